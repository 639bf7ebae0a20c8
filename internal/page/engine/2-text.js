// What there is to read on a page.
(tapin => {
  if (tapin.text) return

  const { eyes, plain } = tapin
  const { away, strays, clipped, styleOf, each, skipped, frameOwner, isHeading, canHost, suspect } = eyes

  // In these, what has a style may still not be drawn.
  const withholding = new Set(['details', 'video', 'audio', 'canvas', 'object', 'meter', 'progress'])

  // Boxes that can be neither clipped nor placed anywhere, and those that are never placed.
  const flowing = new Set(['inline', 'contents', 'table-row', 'table-row-group', 'table-header-group', 'table-footer-group', 'table-column', 'table-column-group'])
  const inPlace = new Set(['table-cell', 'inline-block', 'inline-flex', 'inline-grid', 'inline-table', 'table-caption'])

  // Deeper than any page goes that is made to be read, and less than the stack holds.
  const deepest = 1000

  // text is what there is to read, in order; a number stands for a frame.
  tapin.text = ({ max }) => {
    const body = plain.body(document)
    eyes.look()
    eyes.begin()
    return { ...tapin.textOf(body ? [body] : [], max), opaque: eyes.opaque() }
  }

  const single = /^\S+(?: \S+)*$/

  // textOf is what there is to read in some elements, one after the other. Gaps
  // between words are only as wide as the widest reason for them. Whoever asks
  // has looked before.
  tapin.textOf = (els, max) => {
    const parts = ['']
    let anywhere = els.some(strays), size = 0, gap = 0, depth = 0, deep = false
    const gaps = ['', ' ', '\t', '\n', '\n\n']
    const part = wide => { gap = Math.max(gap, wide) }
    const put = (data, el) => {
      if (anywhere) {
        const r = plain.box(el)
        if (r.width > 0 && away(r, false)) return
      }
      const words = (size ? gaps[gap] : '') + data
      parts[parts.length - 1] += words
      size += words.length
      gap = 0
    }
    const write = (data, el, kept) => {
      const words = kept ? data.replace(/\s+$/, '') : data.replace(/\s+/g, ' ')
      if (!kept && words[0] === ' ') part(1)
      if (words.trim()) put(kept ? words : words.trim(), el)
      if (kept ? /\n\s*$/.test(data) : words.endsWith(' ')) part(kept ? 3 : 1)
    }
    const read = (el, doubtful) => {
      const tag = plain.tag(el)
      if (tag === 'br') return part(3)
      if (size > max || skipped.has(tag) || tag === 'select' || tag === 'textarea' || tag === 'svg') return
      // Every style that is read costs, and a page has thousands of elements.
      const cs = styleOf(el), display = cs.display
      if (display === 'none' || display === '' || doubtful && display !== 'contents' && !plain.seen(el)) return
      if (!flowing.has(display) && (clipped(el, cs, inPlace.has(display) ? '' : cs.position) || cs.contentVisibility === 'hidden')) return
      if (plain.attribute(el, 'contenteditable') !== null && tapin.secret(el)) return
      if (frameOwner(el)) {
        if (cs.visibility === 'visible' && tapin.heldBy(el) && el.getBoundingClientRect().width > 2) parts.push(tapin.heldBy(el), '')
        return
      }
      const wide = width(display, tag), before = size
      let seen, tiny, kept // not known yet
      if (depth === deepest) return void (deep = true)
      depth++
      part(wide)
      const withheld = withholding.has(tag)
      anywhere ||= tapin.shadow(el) !== null // of what is in there nobody has seen the boxes
      each(el, child => {
        const kind = plain.kind(child)
        if (kind === Node.ELEMENT_NODE) read(child, withheld)
        else if (kind === Node.TEXT_NODE) {
          const data = child.data
          if (!(seen ??= cs.visibility === 'visible') || (tiny ??= cs.fontSize === '0px')) return
          // Where nothing but single spaces stands between words, both ways are one.
          if (single.test(data)) put(data, el)
          else write(data, el, kept ??= cs.whiteSpaceCollapse === 'preserve')
        }
      })
      if (canHost.test(tag) && !tapin.shadow(el)) suspect(el, tag, size === before)
      part(wide)
      depth--
    }
    const width = (display, tag) => display === 'inline' || display === 'contents' ? 0 : display.startsWith('inline') ? 1 : display === 'table-cell' ? 2
      : tag === 'p' || isHeading(tag) ? 4 : 3
    for (const el of els) {
      read(el, true)
      part(3)
    }
    return { parts, over: size > max || deep }
  }
})(globalThis.tapin ??= {})
