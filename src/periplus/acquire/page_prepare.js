// Before a page's own scripts, in each of its frames: what a crawl has no use for is not there. None of it is a wall:
// the browser reaches nothing by itself.
(() => {
    const nothing = () => null;
    window.open = nothing;
    window.print = nothing;
    for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport", "SharedWorker"])
        delete window[name];
    try { delete Navigator.prototype.serviceWorker; } catch (error) { /* not in this page */ }
})();
