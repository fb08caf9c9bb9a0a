// The page as it stands: its markup, of at most so many characters, with what shadow roots show in its place.
most => {
    const flatten = root => {
        for (const element of root.querySelectorAll("*")) {
            const shadow = element.shadowRoot;
            if (!shadow) continue;
            flatten(shadow);
            for (const slot of shadow.querySelectorAll("slot")) {
                const nodes = slot.assignedNodes();
                if (nodes.length) slot.replaceWith(...nodes); else slot.replaceWith(...slot.childNodes);
            }
            shadow.querySelectorAll("style").forEach(style => style.remove());
            element.replaceChildren(...shadow.childNodes);
        }
    };
    const entries = type => {
        try {
            const observer = new PerformanceObserver(() => {});
            observer.observe({type, buffered: true});
            return observer.takeRecords();
        } catch (error) { return []; }
    };
    const paints = entries("largest-contentful-paint");
    const shifts = entries("layout-shift").filter(entry => !entry.hadRecentInput);
    // web.dev, CLS: the largest sum of a window of shifts, of at most 5 s, with less than 1 s between two of them
    let most_shift = 0, sum = 0, first = 0, last = 0;
    for (const {startTime: at, value} of shifts) {
        if (!sum || at - last >= 1000 || at - first >= 5000) { sum = 0; first = at; }
        sum += value; last = at; most_shift = Math.max(most_shift, sum);
    }
    // a navigation that begins before its end stops the parser, and the page calls itself complete; its event, which
    // alone tells that it was parsed, is not told to every session of a new process
    const [opened] = performance.getEntriesByType("navigation");
    const parsed = !opened || opened.domContentLoadedEventStart > 0;
    let cut = false, html = "";
    try {
        // what is shown without scripts alone is not shown
        document.querySelectorAll("noscript").forEach(element => element.remove());
        flatten(document);
        // where a script has changed the address, links are relative to the new one
        const moved = opened && opened.name.split("#")[0] !== document.URL.split("#")[0];
        if (moved && document.head && !document.querySelector("base[href]")) {
            const element = document.createElement("base");
            element.href = document.URL.split("#")[0];
            document.head.prepend(element);
        }
    } catch (error) { /* as it is, then */ }
    const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + "\n" : "";
    html = doctype + (document.documentElement ? document.documentElement.outerHTML : "");
    if (html.length > most) { html = html.slice(0, most); cut = true; }
    return {
        html, cut, parsed, url: document.URL,
        lcp: paints.length ? paints[paints.length - 1].startTime / 1000 : null,
        cls: most_shift,
    };
}
