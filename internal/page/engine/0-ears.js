// Ears: what hands and keyboards do to a document is heard here before any
// script of the page can hear it, and handed to whoever of the engine listens.
(tapin => {
  if (tapin.hears) return

  const listening = {} // who, by the type of event
  const pass = e => { for (const fn of listening[e.type] ?? []) fn(e) }

  // Those for fingers are not among them: they slow scrolling.
  const types = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'keydown', 'keypress', 'keyup', 'submit', 'beforeinput', 'input']
  const attend = () => { for (const type of types) addEventListener(type, pass, true) }
  attend()

  // hears adds a listener; one that is there already is not added again. It also
  // makes sure of the ears themselves, as document.open() forgets whoever listened.
  tapin.hears = (which, fn) => {
    for (const type of which) (listening[type] ??= new Set()).add(fn)
    attend()
  }
})(globalThis.tapin ??= {})
