"use strict";
// Pages, sorts and filters the tables whose rows stand beside them as JSON. Text stays text: nothing is written as HTML.
(function () {
  const SHOWN = 200;
  const plain = new Intl.NumberFormat("en");
  function bytes(value) {
    if (value < 1000) return value + " B";
    let unit = 0;
    value /= 1000;
    while (value >= 999.5 && unit < 3) { value /= 1000; unit += 1; }
    return (value < 99.95 ? value.toFixed(1) : value.toFixed(0)) + " " + ["KB", "MB", "GB", "TB"][unit];
  }
  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }
  function anchor(url, name) {
    if (!/^https?:\/\//.test(url)) return document.createTextNode(name || url);
    const made = element("a", name || url);
    made.href = url;
    made.rel = "noopener noreferrer nofollow";
    return made;
  }
  function cell(value, kind, origin) {
    const wide = kind.endsWith("-wide") ? " wide" : "";
    const base = kind.replace("-wide", "");
    const made = element("td", undefined, ((base === "n" || base === "bytes" ? "n" : "") + wide).trim());
    if (Array.isArray(value)) {
      const shown = origin && value[0].startsWith(origin + "/") ? value[0].slice(origin.length) : value[0];
      made.append(anchor(value[0], value[1] || shown));
      if (value[1]) made.append(element("br"), element("small", shown));
    } else made.textContent = typeof value === "number" ? (base === "bytes" ? bytes(value) : plain.format(value)) : value;
    return made;
  }
  function key(value) { return Array.isArray(value) ? value[1] || value[0] : value; }
  for (const data of document.querySelectorAll("script[data-table]")) {
    const table = document.getElementById(data.dataset.table);
    const kinds = table.dataset.kinds.split(" ");
    const frame = table.parentElement, note = frame.nextElementSibling;
    let all = null, rows = null, page = 0, by = -1, down = false;
    const total = Number(data.dataset.rows);
    const bar = element("div", undefined, "pager");
    const find = element("input"), said = element("span"), back = element("button", "‹ earlier"), on = element("button", "later ›");
    find.type = "search";
    find.placeholder = "filter rows";
    find.setAttribute("aria-label", "filter rows");
    back.type = on.type = "button";
    bar.append(find, said, back, on);
    frame.before(bar);
    if (note && note.classList.contains("cut")) note.remove();
    function load() { if (all === null) { all = JSON.parse(data.textContent); rows = all; } }
    function say() {
      const count = rows === null ? total : rows.length;
      const last = Math.min((page + 1) * SHOWN, count);
      said.textContent = count ? "rows " + plain.format(page * SHOWN + 1) + " to " + plain.format(last) + " of " + plain.format(count) + data.dataset.more : "no row has this";
      back.disabled = page === 0;
      on.disabled = last >= count;
    }
    function show() {
      const body = document.createElement("tbody");
      for (const row of rows.slice(page * SHOWN, (page + 1) * SHOWN)) {
        const line = element("tr");
        row.forEach((value, place) => line.append(cell(value, kinds[place], table.dataset.origin)));
        body.append(line);
      }
      table.tBodies[0].replaceWith(body);
      say();
    }
    function turn(step) { load(); page += step; show(); table.scrollIntoView({ block: "nearest" }); }
    back.addEventListener("click", () => turn(-1));
    on.addEventListener("click", () => turn(1));
    let waiting = 0;
    find.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        load();
        const words = find.value.toLowerCase();
        rows = words ? all.filter((row) => row.some((value) => String(value).toLowerCase().includes(words))) : all;
        if (by >= 0) order();
        page = 0;
        show();
      }, 150);
    });
    function order() {
      const place = by, sign = down ? -1 : 1;
      rows = rows.slice().sort((one, other) => {
        const a = key(one[place]), b = key(other[place]);
        return (a < b ? -1 : a > b ? 1 : 0) * sign;
      });
    }
    Array.from(table.tHead.rows[0].cells).forEach((head, place) => {
      const press = element("button", head.textContent, "sort");
      press.type = "button";
      head.replaceChildren(press);
      press.addEventListener("click", () => {
        load();
        down = by === place ? !down : kinds[place].startsWith("n") || kinds[place].startsWith("bytes");
        by = place;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        order();
        page = 0;
        show();
      });
    });
    say();
  }
})();
