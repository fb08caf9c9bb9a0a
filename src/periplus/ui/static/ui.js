"use strict";
// What needs a script: a crawl that is watched shows each change; the command line follows the form. All else is links and forms.
(function () {
  const live = document.getElementById("live");
  if (live) {
    const state = () => document.getElementById("live-state");
    const stream = new EventSource(live.dataset.events);
    stream.addEventListener("moment", (event) => {
      const fresh = new DOMParser().parseFromString(event.data, "text/html");
      const places = fresh.querySelectorAll("[data-live]");
      const same = [...places].every((place) => document.getElementById(place.id)) &&
        document.querySelectorAll("#live [data-live]").length === places.length;
      if (!same) { live.replaceChildren(...document.adoptNode(fresh.body).childNodes); return; }
      for (const place of places) {  // one by one: what did not change keeps the focus and the selection
        const now = document.getElementById(place.id);
        if (now.innerHTML !== place.innerHTML) now.replaceChildren(...document.importNode(place, true).childNodes);
      }
    });
    stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED && state()) state().append(" (no longer watched: load the page again)"); });
    addEventListener("pagehide", () => stream.close());
  }
  const start = document.querySelector("#url");
  if (start) start.addEventListener("keydown", (event) => {  // a field of one line that may take many
    if (event.key === "Enter" && !event.shiftKey && !document.querySelector("[name=preset][data-many]:checked")) {
      event.preventDefault();
      start.form.requestSubmit(start.form.querySelector("button"));
    }
  });
})();
