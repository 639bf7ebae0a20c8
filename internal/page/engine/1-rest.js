// Rest: whether things stand still. What moves is animated by the browser, which
// knows of it, or scrolled, or drawn anew by a script that changes the document.
// Where none of that was for a while, nobody has to wait for two frames to see it.
(tapin => {
  if (tapin.atRest) return

  const EVERYTHING = { subtree: true, childList: true, attributes: true, characterData: true }
  const QUIET = 60 // ms: a few frames
  let since = null // when we began to see nothing; null while we do not look

  // A page that changes all the time shall not pay for being watched: after a
  // change nobody looks for a while.
  const stir = () => {
    if (since === null) return
    since = null
    observer.disconnect()
    setTimeout(look, QUIET)
  }
  const observer = new MutationObserver(stir)
  const look = () => {
    observer.observe(document, EVERYTHING)
    since = performance.now()
  }
  look()
  for (const type of ['scroll', 'load']) document.addEventListener(type, stir, { capture: true, passive: true })
  addEventListener('resize', stir)

  const MOMENT = 30 // ms

  // settle waits until something in the document changes, at most stir, and then
  // until nothing has for a moment, at most still. A page without a script does
  // nothing by itself.
  tapin.settle = ({ stir, still }) => new Promise(done => {
    if (!stir && !document.scripts.length) return done()
    let calm
    const end = () => { watch.disconnect(); clearTimeout(calm); clearTimeout(over); done() }
    let over = setTimeout(end, stir || still)
    const changed = () => {
      if (!calm) { clearTimeout(over); over = setTimeout(end, still) }
      clearTimeout(calm)
      calm = setTimeout(end, MOMENT)
    }
    const watch = new MutationObserver(changed)
    watch.observe(document, EVERYTHING)
    if (!stir) changed()
  })

  // atRest is only said of what we can see all around: what changes in a shadow
  // root is seen by nobody outside of it.
  tapin.atRest = () => {
    if (observer.takeRecords().length) stir()
    return since !== null && performance.now() - since >= QUIET && tapin.roots().length === 1 && !document.getAnimations().some(a => a.playState === 'running')
  }
})(globalThis.tapin ??= {})
