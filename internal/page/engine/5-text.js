// What there is to read on a page.
(tapin => {
  if (tapin.text) return

  const eyes = tapin.eyes
  const { away, drawn, clipped, each, skipped, frameOwner, isHeading, canHost, suspect } = eyes

  // text is what there is to read, in order; a number stands for a frame. Gaps
  // between words are only as wide as the widest reason for them.
  tapin.text = ({ max }) => {
    eyes.look()
    eyes.begin()
    const parts = ['']
    let size = 0, gap = 0
    const gaps = ['', ' ', '\t', '\n', '\n\n']
    const part = wide => { gap = Math.max(gap, wide) }
    const put = (data, el) => {
      const r = el.getBoundingClientRect()
      if (r.width > 0 && away(r, false)) return
      const words = (size ? gaps[gap] : '') + data
      parts[parts.length - 1] += words
      size += words.length
      gap = 0
    }
    const write = (node, el, kept) => {
      const words = kept ? node.data.replace(/\s+$/, '') : node.data.replace(/\s+/g, ' ')
      if (!kept && words[0] === ' ') part(1)
      if (words.trim()) put(kept ? words : words.trim(), el)
      if (kept ? /\n\s*$/.test(node.data) : words.endsWith(' ')) part(kept ? 3 : 1)
    }
    const read = el => {
      const tag = el.localName
      if (tag === 'br') return part(3)
      if (size > max || skipped.has(tag) || tag === 'select' || tag === 'textarea' || tag === 'svg') return
      const cs = getComputedStyle(el), how = drawn(el, cs)
      if (!how || clipped(el, cs)) return
      if (frameOwner(el)) {
        if (how === 2 && tapin.heldBy(el) && el.getBoundingClientRect().width > 2) parts.push(tapin.heldBy(el), '')
        return
      }
      const wide = width(cs.display, tag), before = size, kept = cs.whiteSpaceCollapse === 'preserve'
      part(wide)
      each(el, child => {
        if (child.nodeType === Node.ELEMENT_NODE) read(child)
        else if (child.nodeType === Node.TEXT_NODE && how === 2 && cs.fontSize !== '0px') write(child, el, kept)
      })
      if (canHost.test(tag) && !tapin.shadow(el)) suspect(el, tag, size === before)
      part(wide)
    }
    const width = (display, tag) => display === 'inline' || display === 'contents' ? 0 : display.startsWith('inline') ? 1 : display === 'table-cell' ? 2
      : tag === 'p' || isHeading(tag) ? 4 : 3
    if (document.body) read(document.body)
    return { parts, opaque: eyes.opaque(), over: size > max }
  }
})(globalThis.tapin ??= {})
