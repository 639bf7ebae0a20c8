// Tells what the document shows as soon as it has come so far and stands still, for
// whoever would ask then: the next thing that a page does is to draw itself, and
// nothing that it is asked meanwhile is answered.
(tapin => {
  if (tapin.foretell) return

  const { debug } = console

  tapin.foretell = ({ at, still, outline }) => {
    const look = async () => {
      let told = null // is what whoever listens has to find out
      try {
        if (still) await tapin.settle({ stir: 0, still })
        told = tapin.outline(outline)
        if (told.unseated) told = null // what is in its frames they alone can tell
      } catch { /* nor is this one for the page */ }
      debug(tapin.word + JSON.stringify({ at: 'outline', outline: told }))
    }
    // After those of the page who hear of it.
    if (at === 'DOMContentLoaded') addEventListener(at, () => addEventListener(at, look, { once: true }), { capture: true, once: true })
    else addEventListener(at, look, { once: true })
  }
})(globalThis.tapin ??= {})
