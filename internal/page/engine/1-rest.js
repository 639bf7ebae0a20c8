// Rest: whether things stand still. What moves is animated by the browser, which
// knows of it, or scrolled, or drawn anew by a script that changes the document.
// Where none of that was for a while, nobody has to wait for two frames to see it.
(tapin => {
  if (tapin.atRest) return

  const EVERYTHING = { subtree: true, childList: true, attributes: true, characterData: true }
  const QUIET = 34 // ms: two frames
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

  // It only counts from the next frame on: a busy browser may draw none for long,
  // and then what moves seems to rest.
  const look = () => {
    observer.observe(document, EVERYTHING)
    since = Infinity
    requestAnimationFrame(() => { if (since === Infinity) since = performance.now() })
    follow()
  }

  // An animation is over when a frame has shown its end; its clock says so before.
  // What never ends is not followed: it is at work for as long as it is there.
  let moving = false
  const running = () => document.getAnimations().filter(a => a.playState === 'running')
  const ends = a => (a.effect?.getComputedTiming().endTime ?? Infinity) < Infinity
  const follow = () => {
    if (moving || !running().some(ends)) return
    moving = true
    requestAnimationFrame(() => {
      moving = false
      if (since !== null) since = performance.now()
      follow()
    })
  }
  look()
  for (const type of ['scroll', 'load', 'animationstart', 'transitionrun']) document.addEventListener(type, stir, { capture: true, passive: true })
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
    follow()
    return since !== null && !moving && performance.now() - since >= QUIET && tapin.roots().length === 1 && !running().length
  }
})(globalThis.tapin ??= {})
