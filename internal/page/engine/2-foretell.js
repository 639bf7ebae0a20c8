// Tells what the document shows as soon as it has come so far and stands still, for
// whoever would ask then: the next thing that a page does is to draw itself, and
// nothing that it is asked meanwhile is answered.
(tapin => {
  if (tapin.foretell) return

  const { debug } = console

  // What is in frames they alone can tell, and without its styles a page shows what
  // it never will.
  const bare = () => [...document.querySelectorAll('link[rel~=stylesheet]')].some(l => !l.sheet && !l.disabled)
  const whole = told => !told.unseated && !told.lines.some(l => l.frame)

  tapin.foretell = ({ at, still, outline }) => {
    const look = async () => {
      let told = null // whoever listens finds out by asking
      try {
        if (still) await tapin.settle({ stir: 0, still })
        if (!bare()) {
          told = tapin.outline(outline)
          tapin.unheardRefs()
        }
      } catch { /* nor is that for the page */ }
      debug(tapin.word + JSON.stringify({ at: 'outline', outline: told && whole(told) ? told : null }))
    }
    const once = e => {
      if (!e.isTrusted) return
      removeEventListener(at, once)
      look()
    }
    // After those of the page who hear of it.
    if (at === 'DOMContentLoaded') addEventListener(at, () => addEventListener(at, once), { capture: true, once: true })
    else addEventListener(at, once)
  }
})(globalThis.tapin ??= {})
