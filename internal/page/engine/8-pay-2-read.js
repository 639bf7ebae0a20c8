// Money on the page, read: the lines that a person sees, the sums in them, and
// what stands beside each.
(tapin => {
  if (tapin.payRead) return

  const words = tapin.payWords
  const joint = '\u2063'
  const fold = s => s.normalize('NFKC').toLowerCase().replace(/[\s\u00a0]+/g, ' ').trim()
  const clip = (s, n) => s.length > n ? s.slice(0, n) : s
  const unread = new Set(['script', 'style', 'noscript', 'template', 'head', 'select', 'textarea', 'input', 'option', 'svg', 'canvas', 'video', 'audio', 'iframe', 'frame', 'object', 'embed', 'datalist'])

  const up = (node, is) => {
    for (; node; node = tapin.above(node)) if (node.nodeType === Node.ELEMENT_NODE && is(node)) return node
    return null
  }

  // seen tells whether a person sees the element: not switched off, not moved
  // away, not made for screen readers alone, not too small or faint to read.
  const seen = el => {
    if (!tapin.plain.seen(el, { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true })) return getComputedStyle(el).display === 'contents'
    const r = tapin.plain.box(el), style = getComputedStyle(el)
    if (style.display === 'contents') return true
    if (parseFloat(style.opacity) < .1 || parseFloat(style.fontSize) < 4) return false
    if (r.width === 0 && r.height === 0) return style.overflow === 'visible' // a box whose children stand out of it
    if (r.width <= 1 || r.height <= 1) return style.overflow === 'visible' && style.clip === 'auto' && style.clipPath === 'none'
    if (style.clip !== 'auto' && /rect\((?:0|1)p?x?[, ]/.test(style.clip)) return false
    if (/inset\((?:50|100)%/.test(style.clipPath)) return false
    return r.right + scrollX > 0 && r.bottom + scrollY > 0
  }

  const written = el => el.isContentEditable || ['textbox', 'searchbox', 'combobox', 'spinbutton'].includes(tapin.plain.attribute(el, 'role'))
  const button = el => el.localName === 'button' || tapin.plain.attribute(el, 'role') === 'button'

  const tidy = s => s.replace(/[ \t\n\r\f]+/g, ' ').trim()

  // inline tells what does not begin a line.
  const inline = el => /^(?:inline|contents|ruby)/.test(getComputedStyle(el).display)

  // lines are the visible texts of the document, a piece for each block, outside
  // of whatever can be typed into. Digits that meet without a space are joined
  // by a mark: raised cents are no thousands.
  const lines = () => {
    const out = []
    let text = '', owner = null
    const end = () => {
      const line = tidy(text)
      if (line) out.push({ text: line, el: owner })
      text = ''
      owner = null
    }
    const add = (s, el) => {
      if (!s.trim()) {
        if (text && s) text += ' '
        return
      }
      if (/\d$/.test(text) && /^\d/.test(s)) text += joint
      else if (/\p{L}$/u.test(text) && /^(?:\d|[A-Z]{3}[ \u00a0]?\d)/.test(s) || /\d$/.test(text) && /^\p{L}/u.test(s)) text += ' ' // a label and its sum
      text += s
      owner ??= el
    }
    const walk = (node, depth) => {
      if (depth > 400 || out.length > 3000) return
      if (node.nodeType === Node.TEXT_NODE) {
        const parent = tapin.above(node)
        if (parent) add(node.data, parent)
        return
      }
      if (node.nodeType !== Node.ELEMENT_NODE) return
      const tag = tapin.plain.tag(node)
      if (tag === 'br') return end()
      if (unread.has(tag) || written(node) || !seen(node)) return
      if (['s', 'del', 'strike'].includes(tag) || /line-through/.test(getComputedStyle(node).textDecorationLine)) return add(' ', node) // what it was
      // A link behind a sum, such as "Change", does not say what the sum is.
      const within = inline(node) && !button(node) && !(tag === 'a' && hasSum(text))
      if (!within) end()
      const root = tapin.shadow(node)
      if (root) for (const child of root.childNodes) walk(child, depth + 1)
      else if (tag === 'slot' && node.assignedNodes().length) for (const child of node.assignedNodes()) walk(child, depth + 1)
      else for (let child = tapin.plain.first(node); child; child = tapin.plain.next(child)) walk(child, depth + 1)
      if (!within) end()
    }
    if (document.body) walk(tapin.plain.body(document), 0)
    end()
    return out
  }

  // drawn is the text of a part of a component with what the page hung into it.
  const drawn = node => {
    if (node.nodeType === Node.TEXT_NODE) return node.data
    if (node.nodeType !== Node.ELEMENT_NODE || unread.has(node.localName)) return ''
    const hung = node.localName === 'slot' ? node.assignedNodes() : []
    return [...hung.length ? hung : node.childNodes].map(drawn).join(' ')
  }

  const letters = /\p{L}{2}/u
  const hasSum = s => /\d/.test(s) && /[\p{Sc}円元원]|(?<!\p{L})(?:[A-Z]{3}|kr\.?|zł|Kč|Ft|Fr\.|Rs\.?|RM|Rp|R(?= ?\d)|euros?|dollars?)(?!\p{L})/u.test(s)

  // calls tells whether a line names its sum a total. In running text only the
  // words right before a sum do: an article may speak of total costs.
  const calls = line => {
    if (line.length < prose) return words.total.some(w => w.test(line))
    for (const at of line.matchAll(/\d[\d.,' ]*/g)) if (words.total.some(w => w.test(line.slice(Math.max(0, at.index - 32), at.index)))) return true
    return false
  }
  const prose = 120

  // distance is how many boxes lie between two elements and what holds both.
  const distance = (a, b) => {
    for (let n = 0, node = a; node && n < 5; n++, node = tapin.above(node)) if (tapin.within(b, node)) return n
    return 9
  }

  // labelOf is what stands before a sum that has no words of its own: in its
  // row, or right above it.
  const labelOf = (all, i) => {
    const row = up(all[i].el, n => ['tr', 'li', 'dl'].includes(n.localName) || n.getAttribute('role') === 'row')
    for (let j = i - 1, left = 4; j >= 0 && left > 0; j--, left--) {
      const before = all[j]
      if (hasSum(before.text) && !(row && row.localName === 'tr' && tapin.within(before.el, row))) return ''
      const near = row && row.localName !== 'dl' ? tapin.within(before.el, row) : distance(all[i].el, before.el) <= 3
      if (!near) return ''
      if (letters.test(before.text)) return before.text
    }
    return ''
  }

  // echoed tells whether a text may be there only because somebody typed it or
  // put it into the address.
  const echoes = () => {
    const typed = []
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll('input,textarea,[contenteditable]')) {
        const value = fold(el.localName === 'input' || el.localName === 'textarea' ? String(el.value ?? '') : el.textContent ?? '')
        if (value.length > 3 && value.length < 5000) typed.push(value)
      }
    }
    let address = location.href
    try { address = decodeURIComponent(location.href.replaceAll('+', ' ')) } catch { /* as it is */ }
    address = fold(address.slice(0, 8000))
    return (label, text) => {
      const line = fold(`${label} ${text}`), own = fold(text), number = /\d[\d.,' ]*\d|\d/.exec(own)?.[0] ?? ''
      if (typed.some(v => v.includes(own) && /\p{L}/u.test(v.replace(own, '')) || letters.test(v) && number.length > 1 && v.includes(number) && line.includes(v))) return 'field'
      const plain = number.replace(/[^\d]/g, ''), parts = address.match(/\d[\d.,]*/g) ?? []
      if (own.length > 3 && address.includes(own)) return 'address'
      if (plain.length > 1 && parts.some(p => p.replace(/[^\d]/g, '') === plain || Number(p) > 0 && Number(p).toFixed(2).replace('.', '') === plain)) return 'address'
      return ''
    }
  }

  const boxOf = el => {
    const r = el.getBoundingClientRect()
    return { x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height }
  }

  tapin.payRead = { fold, clip, up, button, inline, unread, tidy, lines, hasSum, labelOf, echoes, calls, boxOf, drawn }
})(globalThis.tapin ??= {})
