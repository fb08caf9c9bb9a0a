"use strict";
// The whole site on a canvas: drag, wheel, pinch and keys move it; hover names, a click tells and shows links, two pages have a way.
(function () {
  const canvas = document.getElementById("site-graph");
  if (!canvas) return;
  const context = canvas.getContext("2d");
  const told = document.getElementById("site-told"), hint = document.getElementById("site-hint"), found = document.getElementById("site-found");
  const root = canvas.dataset.root, LABEL_PX = 12, GRID = 40;
  let graph = null, scale = 1, left = 0, top = 0, over = -1, chosen = -1, links = [], way = [], marked = new Set(), ratio = 1, colours = {}, due = false;
  const cells = new Map();

  const look = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "paper", "card", "link", "fetched", "failed", "f-teal", "f-amber", "f-blue", "f-red", "f-violet", "f-grey"]) colours[name] = style.getPropertyValue("--" + name).trim();
  };
  const LARGE = 3000, STILL_MS = 150;  // of a larger graph lines and names wait until it stands still
  let movedAt = 0, settling = 0;
  const move = () => { movedAt = performance.now(); clearTimeout(settling); settling = setTimeout(draw, STILL_MS + 10); draw(); };
  const draw = () => { if (!due) { due = true; requestAnimationFrame(paint); } };
  const x = (at) => (graph.x[at] - left) * scale, y = (at) => (graph.y[at] - top) * scale;
  const radius = (at) => Math.max(1.2, graph.r[at] * scale);

  function paint() {
    due = false;
    const width = canvas.width / ratio, height = canvas.height / ratio, count = graph.x.length;
    const light = count > LARGE && performance.now() - movedAt < STILL_MS;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    context.lineWidth = 1;
    context.strokeStyle = colours.line;
    context.beginPath();
    for (let at = 0; at < count && !light; at++) {
      const above = graph.parent[at];
      if (above >= 0) { context.moveTo(x(at), y(at)); context.lineTo(x(above), y(above)); }
    }
    context.stroke();
    if (chosen >= 0) {
      context.strokeStyle = colours.link;
      context.globalAlpha = 0.45;
      context.beginPath();
      for (const end of links) { context.moveTo(x(chosen), y(chosen)); context.lineTo(x(end), y(end)); }
      context.stroke();
      context.globalAlpha = 1;
    }
    for (const [part, rows] of byPart) {  // one path a colour: ten thousand circles in some milliseconds
      context.fillStyle = colours["f-" + graph.hues[part]];
      context.beginPath();
      for (const at of rows) {
        const px = x(at), py = y(at), r = radius(at);
        if (px < -r || py < -r || px > width + r || py > height + r) continue;
        if (r < 2.5) { context.fillRect(px - r, py - r, 2 * r, 2 * r); continue; }
        context.moveTo(px + r, py);
        context.arc(px, py, r, 0, 7);
      }
      context.fill();
      if (scale > 0.5 && !light) { context.strokeStyle = colours.soft; context.lineWidth = 0.6; context.stroke(); }
    }
    if (way.length) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 3;
      context.beginPath();
      way.forEach((at, step) => step ? context.lineTo(x(at), y(at)) : context.moveTo(x(at), y(at)));
      context.stroke();
    }
    for (const at of new Set([...marked, ...way, chosen, over].filter((one) => one >= 0))) {
      context.strokeStyle = colours.ink;
      context.lineWidth = at === chosen ? 3 : 2;
      context.beginPath();
      context.arc(x(at), y(at), radius(at) + 2, 0, 7);
      context.stroke();
    }
    if (!light) label(width, height);
  }

  function label(width, height) {  // the folders first, then what is large enough; a name that would cover another is left out
    const taken = [], large = order.filter((at) => radius(at) >= 4).slice(0, 500);
    const covers = (at, half, py) => large.some((other) => other !== at && Math.abs(x(other) - x(at)) < half + radius(other) * 0.7 && y(other) + radius(other) * 0.7 > py - 12 && y(other) - radius(other) * 0.7 < py + 3);
    const put = (words, px, py, bold) => {
      context.font = (bold ? "600 13px " : LABEL_PX + "px ") + "system-ui, sans-serif";
      const half = context.measureText(words).width / 2 + 2;
      if (px + half < 0 || px - half > width || py < 10 || py > height || taken.some((box) => px - half < box[2] && box[0] < px + half && py - 12 < box[3] && box[1] < py + 4)) return;
      taken.push([px - half, py - 12, px + half, py + 4]);
      context.lineWidth = 3;
      context.strokeStyle = colours.paper;
      context.lineJoin = "round";
      context.strokeText(words, px - half + 2, py);
      context.fillStyle = colours.ink;
      context.fillText(words, px - half + 2, py);
    };
    for (const at of [over, chosen, ...way, ...marked]) if (at >= 0) put(graph.name[at].slice(0, 60), x(at), y(at) - radius(at) - 6, true);
    for (const part of parts) put(graph.parts[part.part], (part.x - left) * scale, (part.y - top) * scale, true);
    for (const at of order) {
      if (radius(at) < 7) break;
      const words = graph.name[at].length > 34 ? graph.name[at].slice(0, 33) + "…" : graph.name[at];
      context.font = LABEL_PX + "px system-ui, sans-serif";
      if (!covers(at, context.measureText(words).width / 2, y(at) + radius(at) + 13)) put(words, x(at), y(at) + radius(at) + 13, false);
    }
  }

  let byPart = new Map(), order = [], parts = [], places = new Map();
  function prepare() {
    byPart = new Map(); cells.clear();
    places = new Map(graph.url.map((url, at) => [url, at]));
    for (let at = 0; at < graph.x.length; at++) {
      if (!byPart.has(graph.part[at])) byPart.set(graph.part[at], []);
      byPart.get(graph.part[at]).push(at);
      const key = Math.floor(graph.x[at] / GRID) + ":" + Math.floor(graph.y[at] / GRID);
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(at);
    }
    order = [...graph.r.keys()].sort((one, other) => graph.r[other] - graph.r[one]).slice(0, 4000);
    parts = [...byPart].map(([part, rows]) => ({ part, count: rows.length, x: rows.reduce((sum, at) => sum + graph.x[at], 0) / rows.length, y: Math.min(...rows.map((at) => graph.y[at])) - 14 }))
      .filter((one) => one.count > 2).sort((one, other) => other.count - one.count);
  }
  function fit() {
    const box = canvas.getBoundingClientRect();
    ratio = devicePixelRatio || 1;
    canvas.width = box.width * ratio; canvas.height = box.height * ratio;
    const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];
    const trimmed = graph.x.length > 200 ? 0.004 : 0;  // one outlier does not shrink the rest; it lies beside the window
    const x0 = quantile(graph.x, trimmed), x1 = quantile(graph.x, 1 - trimmed), y0 = quantile(graph.y, trimmed), y1 = quantile(graph.y, 1 - trimmed);
    scale = Math.min(box.width / (x1 - x0 + 120), box.height / (y1 - y0 + 120), 3);
    left = (x0 + x1) / 2 - box.width / scale / 2; top = (y0 + y1) / 2 - box.height / scale / 2;
    draw();
  }
  function zoom(factor, px, py) {
    const next = Math.max(0.02, Math.min(12, scale * factor));
    left += px / scale - px / next; top += py / scale - py / next;
    scale = next; move();
  }
  function at(px, py) {
    const gx = px / scale + left, gy = py / scale + top, reach = 10 / scale, span = Math.ceil((reach + 16) / GRID);
    let best = -1, least = Infinity;
    for (let column = -span; column <= span; column++) for (let row = -span; row <= span; row++)
      for (const one of cells.get((Math.floor(gx / GRID) + column) + ":" + (Math.floor(gy / GRID) + row)) || []) {
        const far = Math.hypot(graph.x[one] - gx, graph.y[one] - gy) - graph.r[one];
        if (far < least) { least = far; best = one; }
      }
    return least < reach / 2 ? best : -1;
  }
  const screen = (url) => `${root}page?url=${encodeURIComponent(url)}`;
  function element(tag, words, attributes) {
    const made = document.createElement(tag);
    if (words) made.textContent = words;
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    return made;
  }
  async function choose(one) {
    chosen = one; links = []; draw();
    told.replaceChildren();
    if (one < 0) return;
    const title = element("p"), url = graph.url[one];
    if (graph.of_folders) {
      title.append(element("a", graph.name[one], { href: `?under=${encodeURIComponent(url)}` }), ` · ${graph.pages[one].toLocaleString("en")} pages`);
      told.append(title);
      return;
    }
    title.append(element("a", graph.name[one], { href: screen(url) }), " ", element("span", url, { class: "soft" }));
    const row = element("p", "", { class: "row wrap" });
    for (const [word, field] of [["A way from here", "from"], ["A way to here", "to"]]) {
      const button = element("button", word, { type: "button", class: "quiet" });
      button.addEventListener("click", () => { document.getElementById("way-" + field).value = url; document.getElementById("way-" + (field === "from" ? "to" : "from")).focus(); });
      row.append(button);
    }
    row.append(element("a", "Links around it", { href: `${root}graph?node=${encodeURIComponent(url)}` }));
    told.append(title, row);
    const answer = await fetch(`${canvas.dataset.links}&url=${encodeURIComponent(url)}`, { headers: { accept: "application/json" } }).then((response) => response.json());
    if (chosen === one && answer.ends) { links = answer.ends.map((end) => places.get(end)).filter((end) => end !== undefined); title.append(element("span", ` · ${answer.out} links out, ${answer.in} in`, { class: "soft" })); draw(); }
  }
  function tell(one, px, py) {
    if (one === over) return;
    over = one;
    hint.hidden = one < 0;
    if (one >= 0) {
      hint.textContent = `${graph.name[one]} · ${graph.parts[graph.part[one]]}${graph.of_folders ? ` · ${graph.pages[one].toLocaleString("en")} pages` : ""}`;
      hint.style.transform = `translate(${Math.min(px + 12, canvas.clientWidth - 200)}px, ${py + 16}px)`;
    }
    draw();
  }

  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, [event.offsetX, event.offsetY]); moved = 0; });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!graph) return;
    if (!before) { tell(at(event.offsetX, event.offsetY), event.offsetX, event.offsetY); return; }
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (others.length) {
      const [other] = others;
      zoom(Math.hypot(event.offsetX - other[0], event.offsetY - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1])), other[0], other[1]);
    } else { left -= (event.offsetX - before[0]) / scale; top -= (event.offsetY - before[1]) / scale; move(); }
    moved += Math.abs(event.offsetX - before[0]) + Math.abs(event.offsetY - before[1]);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
  });
  const up = (event) => {
    if (pointers.delete(event.pointerId) && moved < 5 && graph && event.type === "pointerup") choose(at(event.offsetX, event.offsetY));
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("wheel", (event) => { if (graph) { event.preventDefault(); zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY); } }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const width = canvas.clientWidth, height = canvas.clientHeight, step = 60 / scale;
    const act = { "+": () => zoom(1.3, width / 2, height / 2), "=": () => zoom(1.3, width / 2, height / 2), "-": () => zoom(1 / 1.3, width / 2, height / 2), 0: fit,
      ArrowLeft: () => { left -= step; draw(); }, ArrowRight: () => { left += step; draw(); }, ArrowUp: () => { top -= step; draw(); }, ArrowDown: () => { top += step; draw(); } }[event.key];
    if (graph && act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
  });
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => {
    if (button.dataset.zoom === "fit") fit(); else zoom(Number(button.dataset.zoom), canvas.clientWidth / 2, canvas.clientHeight / 2);
  });
  document.getElementById("site-png").addEventListener("click", () => canvas.toBlob((picture) => {
    const link = element("a", "", { href: URL.createObjectURL(picture), download: canvas.dataset.name + "-site.png" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }));
  document.getElementById("site-find").addEventListener("input", (event) => {
    const text = event.target.value.trim().toLowerCase();
    marked = new Set(); found.replaceChildren();
    if (text.length > 1) graph.name.forEach((name, one) => { if (name.toLowerCase().includes(text) || graph.url[one].toLowerCase().includes(text)) marked.add(one); });
    const best = [...marked].sort((one, other) => graph.r[other] - graph.r[one]).slice(0, 12);
    for (const one of best) {
      const item = element("li"), button = element("button", graph.name[one], { type: "button", class: "quiet" });
      button.addEventListener("click", () => { left = graph.x[one] - canvas.clientWidth / scale / 2; top = graph.y[one] - canvas.clientHeight / scale / 2; choose(one); });
      item.append(button); found.append(item);
    }
    document.getElementById("site-count").textContent = text.length > 1 ? `${marked.size.toLocaleString("en")} found${marked.size > best.length ? `, the first ${best.length} below` : ""}` : "";
    if (marked.size > 60) marked = new Set(best);
    draw();
  });
  document.getElementById("way").addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = document.getElementById("way-told");
    const answer = await fetch(`${canvas.dataset.way}&from=${encodeURIComponent(document.getElementById("way-from").value)}&to=${encodeURIComponent(document.getElementById("way-to").value)}`, { headers: { accept: "application/json" } }).then((response) => response.json());
    said.replaceChildren();
    way = [];
    if (answer.detail) { said.textContent = answer.detail; draw(); return; }
    const list = element("ol", "", { class: "way" });
    for (const url of answer.way) { const item = element("li"); item.append(element("a", url.replace(/^https?:\/\/[^/]*/, "") || "/", { href: screen(url) })); list.append(item); }
    said.append(answer.way.length ? `${answer.way.length - 1} clicks: ` : "No link leads there from here.", list);
    way = answer.way.map((url) => places.get(url)).filter((one) => one !== undefined);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { look(); if (graph) draw(); });
  addEventListener("resize", () => { if (graph) fit(); });
  look();
  const load = () => fetch(canvas.dataset.graph).then(async (response) => {
    if (response.status === 202) { setTimeout(load, 700); return; }
    const values = await response.json();
    if (!response.ok) { told.textContent = values.detail; return; }
    graph = values;
    document.getElementById("site-waits").hidden = true;
    prepare(); fit();
    canvas.dataset.ready = "yes";
  });
  load();
})();
