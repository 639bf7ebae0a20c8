// Reading out what an instruction names: by selectors, as a table, in a shape.
// The page shares its elements with us, and a form or a document answers to the
// names of what is in it before its own; so nothing is asked of them here but
// through the methods and properties as the browser made them.
(tapin => {
  if (tapin.extract) return

  const { eyes, plain } = tapin
  const { attribute, matches, kind, parent } = plain
  const queries = new Map([Document, DocumentFragment, Element].map(type => [type, plain.free(type.prototype.querySelectorAll)]))
  const walker = plain.free(Document.prototype.createTreeWalker)
  const expression = plain.free(Document.prototype.createExpression)

  const isElement = node => kind(node) === Node.ELEMENT_NODE
  const query = (root, css) => queries.get(root === document ? Document : isElement(root) ? Element : DocumentFragment)(root, css)

  // shadows are the shadow roots inside a place, outer ones first.
  const shadows = place => {
    const roots = [], from = [place]
    if (place !== document && tapin.shadow(place)) from.push(tapin.shadow(place)), roots.push(from[1])
    for (const root of from) {
      const walk = walker(document, root, NodeFilter.SHOW_ELEMENT)
      for (let el = walk.nextNode(); el; el = walk.nextNode()) {
        const inner = tapin.shadow(el)
        if (inner) from.push(inner), roots.push(inner)
      }
    }
    return roots
  }

  // Selecting. A place is the document, or an element that was selected before.
  const byCSS = (place, css) => {
    if (place !== document && /^[>+~]/.test(css)) css = ':scope ' + css
    return [place, ...shadows(place)].flatMap(root => [...query(root, css)])
  }

  // nodes are what an expression selects, in the order of the document; a number
  // or a yes stands for itself.
  const nodes = (xpath, from) => {
    const asked = expression(document, xpath, null)
    const got = asked.evaluate(from, XPathResult.ANY_TYPE, null)
    switch (got.resultType) {
      case XPathResult.NUMBER_TYPE: return [String(got.numberValue)]
      case XPathResult.BOOLEAN_TYPE: return [String(got.booleanValue)]
    }
    const all = asked.evaluate(from, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null)
    return Array.from({ length: all.snapshotLength }, (_, i) => all.snapshotItem(i))
  }

  // byXPath asks from the place itself, so that // means anywhere inside it; what
  // an expression still reaches outside of it does not count.
  const byXPath = (place, xpath) => {
    const own = place === document ? xpath : xpath.replace(/^([(\s]*)\//, '$1./')
    const out = nodes(own, place).filter(node => typeof node === 'string' || place === document || inside(node, place))
    if (typeof out[0] === 'string') return out
    // No expression may begin at a shadow root, but one may go up to it.
    const inner = xpath.replace(/^([(\s]*)\//, '$1../')
    const roots = shadows(place).map(plain.first).filter(Boolean)
    return out.concat(roots.flatMap(first => nodes(inner, first)))
  }

  const inside = (node, place) => {
    for (node = node instanceof Attr ? node.ownerElement : node; node; node = parent(node)) if (node === place) return true
    return false
  }

  const select = (places, s) => {
    if (!s.css && !s.xpath) return places
    const out = new Set()
    for (const place of places) {
      if (place !== document && !isElement(place)) continue
      for (const node of s.css ? byCSS(place, s.css) : byXPath(place, s.xpath)) out.add(node)
    }
    return [...out]
  }

  // check tells the first selection that cannot be understood. The value that
  // a page keeps as an attribute of its password field, as some do with every
  // letter, is not to be guessed by asking which selectors match either.
  const check = all => {
    const none = new DocumentFragment()
    for (const s of all) {
      try {
        if (s.css) query(none, s.css.replace(/^[>+~]/, ':scope $&'))
        // What makes a text of its own would also make one of what is hidden.
        if (s.xpath && expression(document, s.xpath, null).evaluate(new Text(), XPathResult.ANY_TYPE, null).resultType === XPathResult.STRING_TYPE) return { id: s.id, why: 'text' }
      } catch (e) {
        return { id: s.id, why: tapin.badLocator(e) }
      }
      if ((s.css && /\[[^\]]*(value|\\)/i.test(s.css) || s.xpath && /@\s*(\*|node|value)|attribute/.test(s.xpath)) && keepsSecret()) return { id: s.id, why: 'secret' }
    }
    return null
  }

  const keepsSecret = () => [document, ...shadows(document)].some(root =>
    [...query(root, 'input[value]')].some(el => attribute(el, 'value') !== '' && tapin.secret(el)))

  // Seeing. An element that stands inside something hidden or clipped is not to
  // be seen; what is known of one is known of all around it.
  let unseen, covered
  const hidden = el => {
    const way = []
    let is = false
    for (let node = el; node; node = tapin.above(node)) {
      if (unseen.has(node)) {
        is = unseen.get(node)
        break
      }
      way.push(node)
    }
    for (const node of way.reverse()) {
      if (!is && isElement(node)) {
        const cs = getComputedStyle(node)
        is = eyes.skipped.has(plain.tag(node)) || cs.display === 'none' || eyes.clipped(node, cs) || attribute(node, 'contenteditable') !== null && tapin.secret(node)
      }
      unseen.set(node, is)
    }
    return is
  }

  // within tells whether the node stands in one of those that were read already.
  const within = node => {
    const way = []
    let is = false
    for (; node; node = tapin.above(node)) {
      if (covered.has(node)) {
        is = covered.get(node)
        break
      }
      way.push(node)
    }
    for (const passed of way) covered.set(passed, is)
    return is
  }

  // Words of one node: parts as text has them.
  const addresses = new Set(['href', 'src', 'action', 'formaction', 'poster', 'cite', 'background', 'longdesc', 'data'])
  tapin.absolute = (el, url) => {
    try { return new URL(url, plain.base(el)).href } catch { return url }
  }

  const fields = new Set(['input', 'textarea', 'select'])
  const unspoken = new Set(['hidden', 'checkbox', 'radio', 'image', 'file'])

  // valueOf is what a field shows, unless it is a secret.
  const valueOf = el => {
    const tag = plain.tag(el)
    if (hidden(el) || !eyes.shown(el) || tag === 'input' && unspoken.has(el.type)) return ''
    if (tapin.secret(el)) return (tag === 'select' ? el.selectedIndex > 0 : el.value !== '') ? '‹hidden›' : ''
    return tag === 'select' ? [...el.selectedOptions].map(o => o.label || o.text).join(', ') : el.value
  }

  const attributeOf = (el, name) => {
    if (name === 'value' && fields.has(plain.tag(el))) return el.type === 'hidden' ? '' : ['checkbox', 'radio'].includes(el.type) ? attribute(el, name) ?? '' : valueOf(el)
    const value = attribute(el, name)
    return value === null ? '' : addresses.has(name) ? tapin.absolute(el, value) : value.trim()
  }

  const words = (node, attr, max) => {
    if (typeof node === 'string') return { parts: [node] }
    if (node instanceof Attr) return { parts: node.ownerElement ? [attributeOf(node.ownerElement, node.name)] : [] }
    if (node === document) node = plain.body(document)
    if (!node) return { parts: [] }
    if (kind(node) === Node.TEXT_NODE) {
      const around = parent(node)
      return { parts: around && isElement(around) && !hidden(around) && eyes.shown(around) ? [node.data.replace(/\s+/g, ' ').trim()] : [] }
    }
    if (!isElement(node)) return { parts: [] }
    if (attr) return { parts: [attributeOf(node, attr)] }
    if (fields.has(plain.tag(node))) return { parts: [valueOf(node)] }
    if (!plain.first(node) && !plain.tag(node).includes('-') && !tapin.shadow(node) && !eyes.frameOwner(node)) return { parts: [] }
    return hidden(node) ? { parts: [] } : tapin.textOf(node, max)
  }

  const cut = (s, most) => s.length <= most ? s : s.slice(0, Math.max(0, most)).replace(/[\ud800-\udbff]$/, '')

  // Purse is what may still be read out, counted as the answer is written.
  class Purse {
    over = false
    constructor(most) { this.left = most }
    pay(cost) {
      this.left -= cost
      if (this.left < 0) this.over = true
    }
    // text reads one node whole, or as much as there is left for.
    text(node, attr) {
      const got = words(node, attr, Math.max(this.left, 0))
      const all = got.parts.filter(p => typeof p === 'string').map(p => p.trim()).filter(Boolean).join('\n')
      if (!all) return ''
      const text = cut(all, this.left)
      if (got.over || text !== all) this.over = true
      this.pay(JSON.stringify(text).length - 2)
      return text
    }
  }

  // all reads what was selected as text, nothing twice.
  const all = (found, attr, max) => {
    const parts = []
    let size = 0, over = false
    covered = new WeakMap()
    for (const node of found) {
      if (typeof node !== 'string' && !attr && within(node)) continue
      if (size > max) return { parts, over: true }
      const got = words(node, attr, max - size)
      over ||= Boolean(got.over)
      for (let part of got.parts) {
        if (typeof part === 'string' && part.length > 2 * max) part = cut(part, 2 * max), over = true // characters may take two
        if (part !== '') parts.push(part)
        size += typeof part === 'string' && part ? part.length + 1 : 0
      }
      if (!attr && typeof node !== 'string') covered.set(node, true)
    }
    return { parts, over }
  }

  // Tables.
  const grids = 'table,[role=table],[role=grid],[role=treegrid]'
  const cellRoles = '[role=cell],[role=gridcell],[role=columnheader],[role=rowheader]'

  // tables are the grids among what was selected, or the first inside each.
  const tables = found => {
    const out = new Set()
    for (const node of found) {
      if (typeof node === 'string' || node !== document && !isElement(node)) continue
      const own = node !== document && matches(node, grids)
      for (const el of own ? [node] : byCSS(node, grids)) {
        if (hidden(el) || !eyes.shown(el)) continue
        if (!own && plain.tag(el) === 'table' && !eyes.dataTable(el)) continue
        out.add(el)
        break
      }
    }
    return [...out]
  }

  const rowsOf = grid => grid instanceof HTMLTableElement
    ? [...grid.rows].map(tr => ({ tr, head: parent(tr) === grid.tHead, group: parent(tr), cells: [...tr.cells] }))
    : byCSS(grid, '[role=row]').filter(tr => nearest(tr) === grid).map(tr => {
      const cells = byCSS(tr, cellRoles)
      return { tr, head: false, group: grid, cells }
    })

  const nearest = el => {
    do el = tapin.above(el)
    while (el && !(isElement(el) && matches(el, grids)))
    return el
  }

  // span is how many places a cell takes; for rows 0 means all that are left.
  const span = (cell, name, most) => {
    const said = attribute(cell, name)
    if (said === null || said === '1') return 1
    if (typeof most === 'function') most = most()
    const n = parseInt(said)
    return n === 0 && name === 'rowspan' ? most : Math.max(1, Math.min(n || 1, most))
  }
  const isHead = cell => plain.tag(cell) === 'th' || attribute(cell, 'role') === 'columnheader'

  const mostColumns = 500

  // rows of a table, every place filled that a cell spans. Rows and cells that
  // are not there for the eye are not there.
  const table = (grid, purse) => {
    const all = rowsOf(grid).filter(({ tr }) => !hidden(tr) && getComputedStyle(tr).visibility !== 'collapse')
    let head = [], names = null, pending = [], group = null
    const rows = []
    const line = ({ cells }, at, text) => {
      const out = []
      let column = 0
      const spanned = () => {
        while (pending[column]?.rows > 0 && column < mostColumns) {
          pending[column].rows--
          out[column] = pending[column++].text
        }
      }
      for (const cell of cells) {
        spanned()
        if (getComputedStyle(cell).display === 'none') continue
        const said = text(cell), wide = span(cell, 'colspan', mostColumns), high = span(cell, 'rowspan', () => {
          let left = 1
          while (all[at + left]?.group === all[at].group) left++
          return left
        })
        for (let i = 0; i < wide && column < mostColumns; i++) {
          pending[column] = { rows: high - 1, text: said }
          out[column++] = said
        }
      }
      spanned()
      for (; column < pending.length; column++) {
        if (!(pending[column]?.rows > 0)) continue
        pending[column].rows--
        out[column] = pending[column].text
      }
      return Array.from(out, text => text ?? '')
    }
    const plain = cell => purse.text(cell).replace(/\s+/g, ' ')
    for (const [at, row] of all.entries()) {
      if (row.group !== group) group = row.group, pending = []
      const named = !names && (row.head || !rows.length && row.cells.length > 0 && row.cells.every(isHead))
      if (named) {
        head.push(line(row, at, plain))
        continue
      }
      if (!names) names = headers(head)
      const before = purse.left, over = purse.over
      purse.over = false
      const cells = line(row, at, plain)
      for (const [i, cell] of cells.entries()) purse.pay(JSON.stringify(cell).length + 3 + (names[i] ?? '').length)
      if (purse.over && rows.length) {
        purse.left = before
        break
      }
      purse.over ||= over
      if (cells.some(Boolean)) rows.push(cells)
    }
    names ??= headers(head)
    return { names: head.length ? names : null, rows }
  }

  // headers makes one name of the names above each other.
  const headers = head => {
    const out = []
    for (let i = 0; i < Math.max(0, ...head.map(h => h.length)); i++) {
      out.push(head.map(h => h[i] ?? '').filter((name, at, all) => name && name !== all[at - 1]).join(' / '))
    }
    return out
  }

  // Shapes. The answer has no names in it: they are where the shape is known.
  const read = (shape, places, purse, hits) => {
    if (shape.fields) {
      purse.pay(2)
      return shape.fields.map(f => {
        purse.pay(JSON.stringify(f.key).length + 2)
        return read(f.shape, places, purse, hits)
      })
    }
    if (shape.one) {
      for (const node of select(places, shape.one)) {
        const text = purse.text(node, shape.one.attr)
        if (text === '' && !purse.over) continue
        hits.add(shape.one.id)
        purse.pay(2)
        return text
      }
      purse.pay(4)
      return null
    }
    const out = [], of = shape.items ? places : select(places, shape.each ?? shape.all)
    if (of.length && shape.each) hits.add(shape.each.id)
    purse.pay(2)
    for (const node of of) {
      const before = purse.left, over = purse.over, known = new Set(hits)
      purse.over = false
      purse.pay(1)
      const item = shape.all ? purse.text(node, shape.all.attr) : read(shape.of, [node], purse, hits)
      if (shape.all) {
        if (item === '' && !purse.over) {
          purse.left = before
          purse.over = over
          continue
        }
        purse.pay(2)
        hits.add(shape.all.id)
      }
      if (purse.over && out.length) {
        // An item that was cut is left out whole, and everything behind it.
        hits.clear()
        for (const id of known) hits.add(id)
        purse.left = before
        break
      }
      const end = purse.over
      purse.over ||= over
      out.push(item)
      if (end) break
    }
    return out
  }

  // follow goes the steps. A step that leads into frames ends here: the rest is
  // for them.
  tapin.follow = (steps, reading) => {
    let places = [document]
    for (const [i, s] of steps.entries()) {
      const found = select(places, s)
      if (!found.length) return { none: s.id, of: places.length }
      places = found
      if (!s.attr && found.every(node => typeof node !== 'string' && isElement(node) && eyes.frameOwner(node))) {
        return { frames: found.filter(eyes.shown).map(tapin.heldBy).filter(Boolean), step: i + 1 }
      }
    }
    return reading(places)
  }

  tapin.badSelection = check

  // outermost are the elements that are to be seen and do not stand in another.
  tapin.outermost = places => {
    unseen = new WeakMap()
    covered = new WeakMap()
    const out = []
    for (const node of places) {
      if (typeof node === 'string' || !isElement(node) || within(node) || hidden(node)) continue
      covered.set(node, true)
      out.push(node)
    }
    unseen = covered = null
    return out
  }

  // extract reads what an instruction names in this document: none is the
  // selection that matches nothing, blank how many matches show nothing.
  tapin.extract = ({ all: selections, steps, kind, table: named, shape, max }) => {
    const bad = check(selections)
    if (bad) return { bad }
    unseen = new WeakMap()
    eyes.look()
    eyes.begin()
    try {
      const got = tapin.follow(steps, places => {
        const purse = new Purse(max), hits = new Set()
        switch (kind) {
          case 'table': {
            const picked = named ? select(places, named) : places
            if (!picked.length) return { none: named.id, of: places.length }
            const found = tables(picked)
            if (!found.length) return { blank: named ? picked.length : 0, none: named ? -1 : -2 }
            const got = table(found[0], purse)
            return got.rows.length ? { table: got, over: purse.over, matches: found.length } : { blank: found.length, none: -1 }
          }
          case 'json': {
            const value = read(shape, places, purse, hits)
            return { value, hits: [...hits], over: purse.over, matches: places.length }
          }
        }
        const got = all(places, steps.at(-1)?.attr, max)
        return got.parts.length ? { ...got, matches: places.length } : { blank: places.length, none: -1 }
      })
      return { ...got, opaque: eyes.opaque(), here: tapin.here() }
    } finally {
      unseen = covered = null
    }
  }
})(globalThis.tapin ??= {})
