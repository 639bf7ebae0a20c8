// Ears: what hands and keyboards do to a document is heard here before any
// script of the page can hear it, and handed to whoever of the engine listens.
(tapin => {
  if (tapin.hears) return

  const listening = {} // who, by the type of event
  const pass = e => { for (const fn of listening[e.type] ?? []) fn(e) }

  // Of fingers they only listen: if they could prevent anything, scrolling would have
  // to wait for them.
  const types = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'keydown', 'keypress', 'keyup', 'submit', 'beforeinput', 'input']
  const fingers = ['touchstart', 'touchend']
  const attend = () => {
    for (const type of types) addEventListener(type, pass, true)
    for (const type of fingers) addEventListener(type, pass, { capture: true, passive: true })
  }
  attend()

  // hears adds a listener; one that is there already is not added again. It also
  // makes sure of the ears themselves, as document.open() forgets whoever listened.
  tapin.hears = (which, fn) => {
    for (const type of which) (listening[type] ??= new Set()).add(fn)
    attend()
  }
})(globalThis.tapin ??= {})
