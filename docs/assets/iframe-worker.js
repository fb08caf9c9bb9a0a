// The search of the documentation runs in a worker. Browsers start none for pages that are opened as files, so there it
// runs in a hidden frame instead; over HTTP this does nothing. The site builder knows this file by its name and then
// asks no other host for such a script.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = []
      this.onmessage = this.onerror = this.onmessageerror = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.addEventListener("load", () => this.begin(new URL(url, location).href), { once: true })
      document.body.append(this.frame)
    }

    begin(url) {
      const inner = this.frame.contentWindow
      inner.postMessage = data => setTimeout(() => this.onmessage?.({ data }))
      const script = inner.document.createElement("script")
      script.onload = () => {
        this.inner = inner
        this.waiting.splice(0).forEach(data => inner.onmessage({ data }))
      }
      script.onerror = event => this.onerror?.(event)
      script.src = url
      inner.document.body.append(script)
    }

    postMessage(data) {
      if (this.inner) setTimeout(() => this.inner.onmessage({ data }))
      else this.waiting.push(data)
    }

    terminate() {
      this.frame.remove()
    }
  }
}
