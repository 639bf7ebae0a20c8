// Tells where the document is as soon as it has come so far: whoever waits for it
// would have to ask a browser that is busy drawing it. The console is the one way
// out that a document has from its first moment; nobody reads it but while a page
// is waited for, and no page knows the word by which ours are known.
(tapin => {
  if (tapin.arriving || self !== top) return
  tapin.arriving = true

  const { debug } = console
  const tell = e => debug(tapin.word + JSON.stringify({ at: e.type, ...tapin.here() }))
  // After those of the page who hear of it: what they do belongs to it. What they
  // do at its load event is done before it is shown.
  addEventListener('DOMContentLoaded', () => addEventListener('DOMContentLoaded', tell), true)
  addEventListener('pageshow', tell)
})(globalThis.tapin ??= {})
