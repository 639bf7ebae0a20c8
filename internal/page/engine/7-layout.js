// Layout: what a page must not lose when it is laid out for another screen. What
// was typed and what stands open is noted before, looked at after, and put back
// where a page threw it away. Nothing of this runs unless a person drives from a
// screen of their own.
(tapin => {
  if (tapin.layout) return

  const TYPED = 'input:not([type=hidden], [type=file], [type=button], [type=submit], [type=reset], [type=image]), textarea, select, [contenteditable]:not([contenteditable=false])'
  // What is open is not only what the browser opened: most menus and dialogs are drawn by scripts.
  const OPEN = 'dialog[open], details[open], [role=dialog], [role=alertdialog], [role=menu], [role=listbox], [aria-modal=true], [aria-expanded=true], :popover-open'
  const most = 500

  const everywhere = function * (root, selector) {
    yield * root.querySelectorAll(selector)
    for (const el of root.querySelectorAll('*')) {
      const inner = tapin.shadow(el)
      if (inner) yield * everywhere(inner, selector)
    }
  }
  const shown = el => el.checkVisibility?.({ visibilityProperty: true, opacityProperty: true }) ?? true
  const isTick = el => el.type === 'checkbox' || el.type === 'radio'

  const read = el => {
    if (isTick(el)) return String(el.checked)
    if (el instanceof HTMLSelectElement) return JSON.stringify([...el.selectedOptions].map(o => o.value))
    return el.value ?? el.innerText
  }
  // As the page made it: what nobody has changed is not lost when it is made anew.
  const made = el => {
    if (isTick(el)) return String(el.defaultChecked)
    if (el instanceof HTMLSelectElement) {
      const chosen = [...el.options].filter(o => o.defaultSelected)
      const first = el.multiple ? [] : [...el.options].filter(o => !o.disabled).slice(0, 1)
      return JSON.stringify((chosen.length ? chosen : first).map(o => o.value))
    }
    return el.defaultValue ?? ''
  }

  // fields names those that a person or an agent has changed, so that they are
  // found again in a document that was loaded anew.
  const fields = () => {
    const seen = new Map(), out = []
    for (const el of everywhere(document, TYPED)) {
      const like = [el.localName, el.type ?? '', el.name ?? '', el.id].join('\n')
      const nth = seen.get(like) ?? 0
      seen.set(like, nth + 1)
      out.push({ el, key: `${like}\n${nth}` })
      if (out.length >= most) break
    }
    return out
  }

  const open = () => [...everywhere(document, OPEN)].filter(shown).length

  // What could be filled in without scrolling sideways, when that was last noted.
  let reachable = []
  const aside = el => {
    const r = el.getBoundingClientRect()
    return r.width > 0 && (r.left >= innerWidth - 8 || r.right <= 8)
  }

  // layoutAside tells how many of those there are, and how many would have to be
  // looked for beside the page now: it says that it was made for phones, and was not.
  tapin.layoutAside = () => {
    const there = reachable.filter(el => el.isConnected && shown(el))
    return { of: there.length, out: there.filter(aside).length }
  }

  // layout tells whether there is a document to lay out, whether it was made for
  // phones too, and what is to be kept.
  tapin.layout = () => {
    reachable = fields().map(({ el }) => el).filter(el => shown(el) && !aside(el))
    const wide = [...document.querySelectorAll('meta[name=viewport i]')].at(-1)?.content ?? ''
    return {
      ready: document.readyState !== 'loading',
      mobile: /(^|[,;\s])width\s*=\s*device-width/i.test(wide),
      x: scrollX, y: scrollY, wide: document.scrollingElement?.scrollWidth ?? 0,
      open: open(),
      typed: fields().filter(({ el }) => read(el) !== made(el)).map(({ el, key }) => ({ key, value: read(el) })),
    }
  }

  // lost tells how much of what was noted is not there any more.
  tapin.layoutLost = noted => {
    const now = new Map(fields().map(({ el, key }) => [key, read(el)]))
    return {
      typed: noted.typed.filter(({ key, value }) => now.get(key) !== value).length,
      open: Math.max(0, noted.open - open()),
    }
  }

  const setter = el => Object.getOwnPropertyDescriptor(
    el instanceof HTMLTextAreaElement ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype, isTick(el) ? 'checked' : 'value').set

  // mend writes what was noted into the fields that lost it.
  tapin.layoutMend = noted => {
    const now = new Map(fields().map(({ el, key }) => [key, el]))
    for (const { key, value } of noted.typed) {
      const el = now.get(key)
      if (!el || read(el) === value) continue
      if (el instanceof HTMLSelectElement) for (const o of el.options) o.selected = JSON.parse(value).includes(o.value)
      else if (isTick(el)) setter(el).call(el, value === 'true')
      else if ('value' in el) setter(el).call(el, value)
      else el.innerText = value
      el.dispatchEvent(new InputEvent('input', { bubbles: true, composed: true, inputType: 'insertText' }))
      el.dispatchEvent(new Event('change', { bubbles: true }))
    }
  }

  // layoutDrawn waits until the page has been drawn in its new layout, twice: what
  // hears of a change of size draws in the frame after it.
  tapin.layoutDrawn = () => new Promise(done => {
    const late = setTimeout(done, 500)
    requestAnimationFrame(() => requestAnimationFrame(() => { clearTimeout(late); done() }))
  })

  tapin.layoutScroll = ({ x, y }) => scrollTo({ left: x, top: y, behavior: 'instant' })
})(globalThis.tapin ??= {})
