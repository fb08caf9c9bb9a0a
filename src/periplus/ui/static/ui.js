"use strict";
// What needs a script: a crawl that is watched shows each change; the command line follows the form. All else is links and forms.
(function () {
  const live = document.getElementById("live");
  if (live) {
    const state = () => document.getElementById("live-state");
    const LOST = " (connection lost: trying again)";
    const put = (now, fresh) => {  // a drawing takes the place of the last one when it is there, so that nothing flickers
      const drawings = [...fresh.querySelectorAll("img")].map((image) => image.decode().catch(() => {}));
      if (drawings.length) Promise.all(drawings).then(() => now.replaceChildren(...fresh.childNodes));
      else now.replaceChildren(...fresh.childNodes);
    };
    const show = (event) => {
      const fresh = new DOMParser().parseFromString(event.data, "text/html");
      const places = fresh.querySelectorAll("[data-live]");
      const same = [...places].every((place) => document.getElementById(place.id)) &&
        document.querySelectorAll("#live [data-live]").length === places.length;
      if (!same) { live.replaceChildren(...document.adoptNode(fresh.body).childNodes); return; }
      for (const place of places) {  // one by one: what did not change keeps the focus and the selection
        const now = document.getElementById(place.id);
        if (now.innerHTML !== place.innerHTML) put(now, document.importNode(place, true));
      }
    };
    let stream;
    const watch = () => {
      stream = new EventSource(live.dataset.events);
      stream.addEventListener("moment", show);
      stream.addEventListener("error", () => {  // a lost connection is made again by the browser, a refused one only here
        if (stream.readyState !== EventSource.CLOSED) return;
        if (state() && !state().textContent.endsWith(LOST)) state().append(LOST);
        setTimeout(watch, 3000);
      });
    };
    watch();
    addEventListener("pagehide", () => stream.close());
  }
  if (document.querySelector("[data-again]")) {  // until it is there: in place, so that nothing flickers
    const again = () => fetch(location.href).then((answer) => answer.text()).then((text) => {
      if (text.includes("data-again=")) setTimeout(again, 700); else location.reload();
    }).catch(() => setTimeout(again, 3000));
    setTimeout(again, 700);
  }
  const writes = (place) => place.closest("textarea, select, input:not([type=checkbox]):not([type=radio]):not([type=submit])");
  addEventListener("keydown", (event) => {  // one key for what a button says: of the item that has the focus, else of the only one there is
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
    const items = [...document.querySelectorAll("[data-keys]")];
    const now = document.activeElement.closest("[data-keys]");
    if (items.length > 1 && (event.key === "j" || event.key === "k")) {
      const next = items[Math.max(0, Math.min(items.length - 1, items.indexOf(now) + (event.key === "j" ? 1 : -1)))];
      next.focus();
      next.scrollIntoView({ block: "nearest" });
      return;
    }
    const item = now || (items.length === 1 ? items[0] : null);
    const button = item && !event.repeat && item.querySelector(`[data-key="${CSS.escape(event.key)}"]:not(:disabled)`);
    if (button) { event.preventDefault(); button.click(); }
  });
  addEventListener("keydown", (event) => {  // in a table the arrows go from row to row
    if ((event.key !== "ArrowDown" && event.key !== "ArrowUp") || event.ctrlKey || event.altKey || event.metaKey || writes(event.target)) return;
    const body = document.activeElement.closest("table.data tbody");
    if (!body) return;
    const rows = [...body.rows].filter((row) => row.querySelector("a"));
    const now = rows.indexOf(document.activeElement.closest("tr"));
    const next = rows[now < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, now + (event.key === "ArrowDown" ? 1 : -1)))];
    if (next) { event.preventDefault(); next.querySelector("a").focus(); }
  });
  const start = document.querySelector("#url");
  if (start) start.addEventListener("keydown", (event) => {  // a field of one line that may take many
    if (event.key === "Enter" && !event.shiftKey && !document.querySelector("[name=preset][data-many]:checked")) {
      event.preventDefault();
      start.form.requestSubmit(start.form.querySelector("button"));
    }
  });
})();
