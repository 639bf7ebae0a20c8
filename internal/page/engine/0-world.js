// The engine: what tapin knows and does inside a document. It lives in an
// isolated world, which the page can neither see nor touch. Every file may be
// run again in the same document and then does nothing.
(tapin => {
  if (tapin.here) return

  // here tells where the document is.
  tapin.here = () => ({
    url: location.href,
    title: document.title,
    status: performance.getEntriesByType('navigation')[0]?.responseStatus || 0,
  })

  // agent is what the browser calls itself in this page.
  tapin.agent = () => ({ name: navigator.userAgent })
})(globalThis.tapin ??= {})
