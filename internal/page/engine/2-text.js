// What there is to read on a page.
(tapin => {
  if (tapin.text) return

  const { eyes, plain } = tapin
  const { away, strays, clipped, styleOf, each, skipped, frameTags, isHeading, canHost, suspect } = eyes

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
    return { ...body ? tapin.textOf(body, max) : { parts: [], over: false }, opaque: eyes.opaque() }
  }

  // What a tag says of its elements is found out once.
  const known = new Map()
  const kindOf = tag => {
    let kind = known.get(tag)
    if (!kind) {
      known.set(tag, kind = {
        mute: skipped.has(tag) || tag === 'select' || tag === 'textarea' || tag === 'svg',
        frame: frameTags.has(tag), withholds: withholding.has(tag), hosts: canHost.test(tag), own: tag.includes('-'), apart: tag === 'p' || isHeading(tag),
      })
    }
    return kind
  }

  const width = (display, kind) => display === 'inline' || display === 'contents' ? 0 : display.startsWith('inline') ? 1 : display === 'table-cell' ? 2 : kind.apart ? 4 : 3

  const gaps = ['', ' ', '\t', '\n', '\n\n']

  // Reading is what was read so far. Gaps between words are only as wide as the widest
  // reason for them. Where words stand is asked of many at once.
  class Reading {
    parts = ['']
    size = 0
    gap = 0
    pieces = [] // not written down yet, and at most so long
    pending = 0
    anywhere = false // whether some of it may stand where that does not tell

    part(wide) { if (wide > this.gap) this.gap = wide }

    put(words, node, el) {
      this.pieces.push({ gap: this.gap, words, node, el })
      this.pending += words.length + 2
      this.gap = 0
    }

    full(max) {
      if (this.size + this.pending > max) this.settle()
      return this.size > max
    }

    // settle writes down what can be seen of what was read.
    settle() {
      const { pieces } = this, doubtful = this.anywhere || pieces.length > 0 && strays(pieces[0].node, pieces.at(-1).node)
      let gap = 0, words = ''
      for (const piece of pieces) {
        gap = Math.max(gap, piece.gap)
        if (doubtful) {
          const r = plain.box(piece.el)
          if (r.width > 0 && away(r, false)) continue
        }
        words += (this.size || words ? gaps[gap] : '') + piece.words
        gap = 0
      }
      this.parts[this.parts.length - 1] += words
      this.size += words.length
      this.part(gap)
      this.pieces = []
      this.pending = 0
    }

    frame(number) {
      this.settle()
      this.parts.push(number, '')
    }
  }

  const single = /^\S+(?: \S+)*$/, spaceFirst = /^\s/, spaceLast = /\s$/

  // textOf is what there is to read in an element. Whoever asks has looked before.
  tapin.textOf = (top, max) => {
    const text = new Reading()
    let depth = 0, deep = false
    const write = (data, node, el, kept) => {
      if (kept) {
        const words = data.replace(/\s+$/, '')
        if (words) text.put(words, node, el)
        if (/\n\s*$/.test(data)) text.part(3)
        return
      }
      if (spaceFirst.test(data)) text.part(1)
      text.put(data.trim().replace(/\s+/g, ' '), node, el)
      if (spaceLast.test(data)) text.part(1)
    }
    const read = (el, doubtful) => {
      const tag = plain.tag(el)
      if (tag === 'br') return text.part(3)
      const kind = kindOf(tag)
      if (kind.mute || text.full(max)) return
      // Every style that is read costs, and a page has thousands of elements.
      const cs = styleOf(el), display = cs.display
      if (display === 'none' || display === '' || doubtful && display !== 'contents' && !plain.seen(el)) return
      if (!flowing.has(display) && (clipped(el, cs, inPlace.has(display) ? '' : cs.position) || cs.contentVisibility === 'hidden')) return
      if (plain.attribute(el, 'contenteditable') !== null && tapin.secret(el)) return
      if (kind.frame) {
        if (cs.visibility === 'visible' && tapin.heldBy(el) && plain.box(el).width > 2) text.frame(tapin.heldBy(el))
        return
      }
      if (depth === deepest) return void (deep = true)
      depth++
      const wide = width(display, kind), shadow = tapin.shadow(el)
      text.part(wide)
      if (shadow || tag === 'slot') text.anywhere = true // what comes now is of another tree than what came before
      let shown, kept, empty = true // what is not known yet
      each(el, child => {
        const type = plain.kind(child)
        if (type === Node.ELEMENT_NODE) empty = !read(child, kind.withholds) && empty
        else if (type === Node.TEXT_NODE) {
          const data = child.data
          if (!/\S/.test(data)) {
            // Between blocks it parts nothing, and that is where most of it is.
            if (data && text.gap < 3) text.part(data.includes('\n') && (kept ??= cs.whiteSpaceCollapse === 'preserve') ? 3 : 1)
            return
          }
          if (!(shown ??= cs.visibility === 'visible' && cs.fontSize !== '0px')) return
          empty = false
          // Where nothing but single spaces stands between words, both ways are one.
          if (single.test(data)) text.put(data, child, el)
          else write(data, child, el, kept ??= cs.whiteSpaceCollapse === 'preserve')
        }
      })
      if (kind.hosts && (empty || kind.own) && !shadow) suspect(el, tag, empty)
      text.part(wide)
      depth--
      return !empty
    }
    read(top, true)
    text.settle()
    return { parts: text.parts, over: text.size > max || deep }
  }
})(globalThis.tapin ??= {})
