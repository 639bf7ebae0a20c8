// What a page shows, in words: an outline for those who cannot see it, its
// text. Nothing here changes the page,
// and what was typed into a secret field is never read.
(tapin => {
  if (tapin.outline) return

  const plain = tapin.plain

  const frameTags = new Set(['iframe', 'frame', 'object', 'embed', 'fencedframe'])
  const frameOwner = el => frameTags.has(plain.tag(el))

  // Words. What cannot be seen in them goes out: it could only be meant to
  // deceive, and nothing in a page's text may look like a ref of ours.
  const clean = s => !/[^\x20-\x7e]|\[|  |^ | $/.test(s) ? s : s.replace(/[\s\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]+/g, ' ')
    .replace(/[\ue000-\uf8ff\u{e0000}-\u{e007f}]/gu, '').replace(/\[((?:f\d+)?e\d+)\]/g, '($1)').trim()

  const cut = (s, most) => s.length <= most ? s : s.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '') + '…'

  // Roles: what a tag is when the page does not say otherwise. Structure has
  // short words; what can be acted upon has those by which it can be located.
  const tags = {
    button: 'button', summary: 'button', textarea: 'textbox', h1: 'h1', h2: 'h2', h3: 'h3', h4: 'h4', h5: 'h5', h6: 'h6',
    img: 'img', ul: 'list', ol: 'list', menu: 'list', dl: 'list', li: 'item', dt: 'item', dd: 'item', nav: 'nav', main: 'main', aside: 'aside', article: 'article',
    dialog: 'dialog', table: 'table', tr: 'row', td: 'cell', th: 'head', form: 'form', fieldset: 'group', search: 'search', section: 'region',
    header: 'header', footer: 'footer', progress: 'progress', meter: 'meter', canvas: 'canvas', video: 'video', audio: 'audio', option: 'option',
  }
  const inputs = {
    button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton',
    search: 'searchbox', file: 'file',
  }
  const said = {
    heading: 'h2', listitem: 'item', navigation: 'nav', complementary: 'aside', banner: 'header', contentinfo: 'footer', gridcell: 'cell', columnheader: 'head',
    rowheader: 'head', grid: 'table', treegrid: 'table', alertdialog: 'dialog', image: 'img', progressbar: 'progress', radiogroup: 'group', directory: 'list',
  }
  const same = ['button', 'link', 'textbox', 'searchbox', 'spinbutton', 'checkbox', 'radio', 'switch', 'combobox', 'listbox', 'option', 'slider', 'tab', 'tablist',
    'tabpanel', 'menu', 'menubar', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'tree', 'treeitem', 'list', 'main', 'article', 'dialog', 'table', 'row', 'cell',
    'form', 'group', 'search', 'region', 'img', 'meter', 'toolbar', 'alert', 'status', 'figure', 'tooltip']
  for (const role of same) said[role] = role
  const fields = new Set(['textbox', 'searchbox', 'spinbutton', 'combobox', 'listbox', 'slider', 'checkbox', 'radio', 'switch', 'file'])
  const acts = new Set([...fields, 'button', 'link', 'option', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'treeitem', 'clickable'])
  const spoken = new Set(['button', 'link', 'option', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'treeitem', 'checkbox', 'radio', 'switch', 'clickable',
    'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'tooltip'])
  const rowRoles = new Set(['row', 'cell', 'head'])
  const leaves = new Set(['img', 'progress', 'meter', 'canvas', 'video', 'audio']) // have nothing inside
  const pointed = new Set(['img', 'table', 'dialog', 'canvas', 'video', 'audio']) // worth a ref though nobody acts on them
  const bare = new Set(['group', 'region', 'article', 'form', 'figure', 'tabpanel', 'item', 'toolbar']) // mean little without a name
  const skipped = new Set(['script', 'style', 'noscript', 'template', 'head', 'title', 'link', 'meta', 'datalist', 'param', 'source', 'track', 'map'])

  const roleOf = (el, tag) => {
    const attr = el.getAttribute('role')
    if (attr) {
      const word = attr.trim().split(/\s+/)[0].toLowerCase()
      if (word === 'heading') return 'h' + Math.min(6, Math.max(1, parseInt(el.getAttribute('aria-level')) || 2))
      if (word === 'none' || word === 'presentation') return focusable(el) ? native(el, tag) : ''
      if (said[word]) return said[word]
    }
    return native(el, tag)
  }

  const native = (el, tag) => {
    switch (tag) {
      case 'a': case 'area': return el.hasAttribute('href') ? 'link' : ''
      case 'input': return el.type === 'hidden' ? 'none' : el.list ? 'combobox' : inputs[el.type] ?? 'textbox'
      case 'select': return el.multiple || el.size > 1 ? 'listbox' : 'combobox'
      case 'header': case 'footer': return el.parentElement?.closest('article,aside,main,nav,section') ? '' : tag
      case 'section': return named(el) ? 'region' : ''
      case 'table': return dataTable(el) ? 'table' : ''
      case 'svg': return named(el) || el.querySelector(':scope > title') ? 'img' : 'none'
      case 'video': case 'audio': return el.controls || tag === 'video' ? tag : 'none'
    }
    return tags[tag] ?? (el.isContentEditable && !el.parentElement?.isContentEditable ? 'textbox' : '')
  }

  const named = el => el.hasAttribute('aria-label') || el.hasAttribute('aria-labelledby')
  const focusable = el => el.tabIndex >= 0

  // dataTable tells tables from those that only place things.
  const dataTable = el => el.caption || el.tHead || el.querySelector(':scope > * > tr > th') ||
    (el.rows.length > 1 && el.rows[0].cells.length > 1 && !el.querySelector('table,form'))

  // each goes through the children as they are drawn: those of the shadow root,
  // and in a slot those that were given to it.
  const each = (el, fn) => {
    const given = plain.tag(el) === 'slot' ? el.assignedNodes() : []
    if (given.length) return given.forEach(fn)
    for (let child = plain.first(tapin.shadow(el) ?? el); child; child = plain.next(child)) fn(child)
  }

  const shown = el => plain.seen(el, { visibilityProperty: true })

  // Where things are. Every box is read once, and nothing is written between.
  let view, reach
  const look = clip => {
    view = clip ?? { left: 0, top: 0, right: innerWidth, bottom: innerHeight }
    const e = document.scrollingElement ?? document.documentElement, start = e ? -e.scrollLeft : 0
    const back = e && getComputedStyle(e).direction === 'rtl' ? e.scrollWidth - e.clientWidth : 0
    reach = { left: start - back, top: e ? -e.scrollTop : 0 }
  }

  const seen = r => r.right > view.left && r.left < view.right && r.bottom > view.top && r.top < view.bottom
  const away = (r, fixed) => r.right <= reach.left || r.bottom <= reach.top || fixed && (r.left >= innerWidth || r.top >= innerHeight || r.right <= 0 || r.bottom <= 0)

  // strays tells whether anything from one node to another can be out of reach at
  // all. On most pages nothing is, and then no box among them has to be read.
  const strays = (first, last) => {
    const range = document.createRange()
    range.setStartBefore(first)
    range.setEndAfter(last)
    const r = range.getBoundingClientRect()
    return r.left < reach.left || r.top < reach.top
  }

  // A style is live, and to make one costs more than to ask it: it is kept for as
  // long as its element is.
  const styles = new WeakMap()
  const styleOf = el => {
    let style = styles.get(el)
    if (!style) styles.set(el, style = getComputedStyle(el))
    return style
  }

  // clipped is a box that shows nothing of what is in it.
  const clipped = (el, cs, position = cs.position) => {
    const positioned = position === 'absolute' || position === 'fixed', spills = cs.overflowX === 'visible'
    if (spills && !positioned) return false
    const r = plain.box(el)
    if (!spills && (r.width <= 1 || r.height <= 1)) return true
    if (!positioned) return false
    return /^inset\((50|100)%/.test(cs.clipPath) || /^rect\((0|1)px,? (0|1)px,? (0|1)px,? (0|1)px\)/.test(cs.clip) || r.width > 0 && away(r, position === 'fixed')
  }

  // Sink gathers what a place shows: text runs together until a block or a thing
  // with a role of its own ends it.
  class Sink {
    kids = []
    run = ''
    from = null
    add(text, el) {
      if (!this.from && el && /\S/.test(text)) this.from = el
      this.run += text
    }
    end() {
      if (this.run === '') return
      const text = this.from && clean(this.run)
      if (text) this.kids.push({ text, el: this.from })
      this.run = ''
      this.from = null
    }
    put(node) {
      this.end()
      this.kids.push(node)
    }
  }

  // What is so on the way down, as bits: inside something fixed, not visible
  // itself, told elsewhere, under a pointing cursor, part of
  // a name, nothing but words wanted, inside something to act upon, in a table.
  const FIXED = 1, HIDDEN = 2, MUTE = 4, POINTER = 8, NAMING = 16, PLAIN = 32, ACTING = 64, TABLE = 128
  const passedOn = FIXED | MUTE | NAMING | PLAIN | ACTING | TABLE

  // told are labels whose words appear as the name of what they label; opaque
  // are elements that may have a shadow root we cannot see, asked those that
  // somebody has looked at since.
  let told, opaque, unseated // unseated: there is a frame that nobody has said the number of
  const asked = new WeakSet()
  let askedAll = false

  const labelled = root => {
    tapin.learnLabels(root, root === document)
    for (const el of root.querySelectorAll('[aria-labelledby]')) {
      const role = roleOf(el, el.localName)
      if (!role || el.getAttribute('aria-hidden') === 'true' || !shown(el)) continue
      for (const by of referred(el)) if (fields.has(role) && !by.contains(el) || role === 'group' && by.parentNode === el) told.add(by)
    }
  }

  const referred = el => el.getAttribute('aria-labelledby')?.split(/\s+/).map(id => id && el.getRootNode().getElementById?.(id)).filter(Boolean) ?? []

  // visibility: 0 not drawn at all, 1 only what is in it may be, 2 drawn.
  const drawn = (el, cs) => {
    if (shown(el)) return 2
    if (cs.display === 'none') return 0
    if (cs.visibility !== 'visible') return 1
    return cs.display === 'contents' ? 2 : 0 // neither: content that is skipped
  }

  // walk puts what an element shows into the sink.
  const walk = (el, sink, env) => {
    const tag = el.localName
    if (tag === 'br') return sink.add(' ', null)
    if (skipped.has(tag) || el.inert || el.getAttribute('aria-hidden') === 'true') return
    const cs = styleOf(el), look = drawn(el, cs), display = cs.display
    let inner = env & passedOn
    if (!look) return
    if (display !== 'inline') {
      // Every style that is read costs: these mean nothing to what runs in a line.
      const position = cs.position
      if (!(env & NAMING) && clipped(el, cs, position) && !standsFor(el)) return
      if (position === 'fixed') inner |= FIXED
    }
    if (look === 1) inner |= HIDDEN
    if (told.has(el)) inner |= MUTE
    if (!(env & ACTING) && cs.cursor === 'pointer') inner |= POINTER
    if (frameOwner(el)) return inner & (HIDDEN | PLAIN) ? undefined : enter(el, sink)
    let role = look === 1 ? '' : roleOf(el, tag)
    if (role === 'none') return
    if (tag === 'label' && look === 2 && el.control && !(env & PLAIN)) {
      if (!visible(el.control)) role = labelRole(el.control)
      else if (!named(el.control)) inner |= MUTE
    }
    if (rowRoles.has(role) && !(env & TABLE)) role = ''
    if (env & PLAIN && (fields.has(role) || role === 'option')) return
    if (!role && look === 2 && clicks(el, inner, env)) role = 'clickable'
    if (role) return emit(el, tag, role, sink, inner)
    const flows = display === 'inline' || display === 'contents', apart = !flows && !display.startsWith('inline')
    if (apart) sink.end()
    else if (!flows) sink.add(' ', null)
    const before = sink.kids.length + sink.run.length
    descend(el, sink, inner)
    if (canHost.test(tag) && !tapin.shadow(el)) suspect(el, tag, before === sink.kids.length + sink.run.length)
    if (apart) sink.end()
    else if (!flows) sink.add(' ', null)
  }

  const descend = (el, sink, env) => {
    const root = tapin.shadow(el)
    if (root) labelled(root)
    const reads = !(env & (MUTE | HIDDEN))
    let tiny // not known yet
    each(el, child => {
      if (child.nodeType === Node.ELEMENT_NODE) walk(child, sink, env)
      else if (reads && child.nodeType === Node.TEXT_NODE) {
        const text = child.data
        if (/\S/.test(text) ? tiny ??= styleOf(el).fontSize === '0px' : !sink.run) return
        sink.add(text, el)
      }
    })
  }

  // suspect notes what may have a closed shadow root: it takes up room and shows
  // nothing, or it is an element of the page's own making.
  const canHost = /-|^(?:div|span|section|article|aside|main|nav|p|h[1-6])$/
  const suspect = (el, tag, empty) => {
    if (asked.has(el) || !tag.includes('-') && el.firstChild || !empty && askedAll) return
    if (empty) {
      const r = el.getBoundingClientRect()
      if (r.width < 16 || r.height < 8 || !tag.includes('-') && !plainBox(getComputedStyle(el))) return
    } else askedAll = true
    asked.add(el)
    opaque = true
  }
  const plainBox = cs => cs.backgroundImage === 'none' && cs.backgroundColor === 'rgba(0, 0, 0, 0)' && cs.borderTopWidth === '0px'

  // standsFor: words hidden from the eye that say what is drawn beside them,
  // which in turn is hidden from those who cannot see.
  const standsFor = el => [el.previousElementSibling, el.nextElementSibling].some(s => s?.getAttribute('aria-hidden') === 'true' && s.textContent.trim())

  const clicks = (el, inner, env) => el !== document.body && el !== document.documentElement && (el.hasAttribute('onclick') ||
    !(env & ACTING) && (inner & POINTER && !(env & POINTER) || el.hasAttribute('tabindex') && el.tabIndex >= 0))

  // labelRole: where a control itself is not to be seen, a person uses its label
  // in its place.
  const labelRole = control => ['checkbox', 'radio', 'file'].includes(control.type) ? inputs[control.type] : ''

  const visible = el => {
    if (!shown(el)) return false
    const r = el.getBoundingClientRect()
    return r.width > 1 && r.height > 1 && !clipped(el, getComputedStyle(el)) && !away(r, false)
  }

  // enter leaves a place for what the frame shows.
  const enter = (el, sink) => {
    const r = el.getBoundingClientRect(), frame = tapin.heldBy(el)
    if (r.width <= 2 || r.height <= 2 || away(r, false)) return
    unseated ||= !frame
    if (!frame && el.localName !== 'iframe') return
    sink.put({ role: 'frame', name: cut(clean(el.getAttribute('aria-label') || el.title || ''), 100), el, frame, seen: seen(r), kids: [] })
  }

  // emit makes a line of an element that has a role.
  const emit = (el, tag, role, sink, env) => {
    const node = { role, el, act: acts.has(role), fixed: Boolean(env & FIXED), kids: [] }
    const field = fields.has(role) && tag !== 'label'
    node.name = field && !spoken.has(role) || tag === 'input' && field ? nameOf(el) : ownName(el, tag)
    if (opens(role, tag, el)) {
      const within = new Sink()
      let inner = env
      if (spoken.has(role)) inner |= NAMING
      if (node.act) inner = (inner | ACTING) & ~MUTE
      if (role === 'table') inner |= TABLE
      if (role === 'cell' || role === 'head') inner &= ~TABLE
      descend(el, within, inner)
      within.end()
      node.kids = within.kids
    }
    if (role === 'row') cells(node)
    else if (isHeading(role)) title(node)
    else if (tag === 'label') Object.assign(node, { name: clean(wordsOf(node.kids, true)), kids: actsIn(node.kids) })
    else if (spoken.has(role)) speak(node)
    else if (role === 'combobox') node.kids = actsIn(node.kids)
    if (node.act) node.states = states(tag === 'label' ? el.control : el, role, tag)
    else if (role === 'dialog' && (el.getAttribute('aria-modal') === 'true' || tag === 'dialog' && el.matches(':modal'))) node.states = ['modal']
    else if (el.getAttribute('aria-busy') === 'true') node.states = ['busy']
    if (field) value(node, el, role, tag)
    else if (role === 'progress' || role === 'meter') node.value = el.getAttribute('aria-valuetext') || String(el.value ?? el.getAttribute('aria-valuenow') ?? '')
    if (worth(node, env)) return sink.put(node)
    sink.end()
    sink.kids.push(...node.kids)
  }

  // opens: whether there is anything to find inside. What is in a field is its
  // value; lists of choices show their choices.
  const opens = (role, tag, el) => {
    if (!fields.has(role) || tag === 'label') return !leaves.has(role)
    return tag !== 'input' && tag !== 'select' && tag !== 'textarea' && !el.isContentEditable && (spoken.has(role) || role === 'listbox' || role === 'combobox')
  }

  const isHeading = role => /^h[1-6]$/.test(role)

  // wordsOf is everything said in there; what can be acted upon is named by
  // itself and only part of it if wanted.
  const wordsOf = (kids, all) => kids.map(k => k.text ?? (k.act && !all ? '' : `${k.name || k.long || ''} ${wordsOf(k.cells?.flat() ?? k.kids, all)}`)).join(' ')
  const actsIn = kids => kids.flatMap(k => k.text ? [] : k.act || k.frame ? [k] : actsIn(k.cells?.flat() ?? k.kids))
  const leaf = node => !node.kids?.length && !node.cells && !node.frame

  // speak: what is in a thing that is called by its content is its name, said
  // once; only what can be acted upon in it remains. Where there is more than a
  // name's worth it stays as it is, below.
  const speak = node => {
    const words = node.name || clean(wordsOf(node.kids))
    if (node.name || words.length <= 150) {
      node.name = words || clean(node.el.title || '')
      node.kids = actsIn(node.kids)
    } else node.long = words
  }

  // title: a heading that is one link is one line.
  const title = node => {
    const inside = actsIn(node.kids)
    if (!node.name && inside.length === 1 && leaf(inside[0]) && !clean(wordsOf(node.kids))) [node.cells, node.kids] = [[inside], []]
    else {
      node.name ||= clean(wordsOf(node.kids, true))
      node.kids = inside
    }
  }

  // cells: a row whose cells hold simple things is one line.
  const cells = node => {
    const all = node.kids.map(k => k.role === 'cell' || k.role === 'head' ? k : { role: 'cell', el: node.el, kids: [k] })
    if (all.every(c => c.kids.length <= 3 && c.kids.every(leaf))) {
      while (all.length && !all.at(-1).kids.length) all.pop()
      node.cells = all.map(c => c.kids)
      node.kids = []
      if (all.length && all.every(c => c.role === 'head')) node.role = 'head'
    } else node.kids = all.flatMap(c => c.kids.length > 1 ? [c] : c.kids)
  }

  // worth tells whether a node says more than what is in it.
  const worth = (node, env) => {
    const { role, kids, cells, el } = node
    if (cells) return cells.length > 0
    if (env & TABLE && rowRoles.has(role)) return role !== 'row' || kids.length > 0
    if (isHeading(role)) return node.name !== ''
    if (role === 'clickable' && !node.long) {
      if (!node.name || kids.length === 1 && kids[0].act && node.name === kids[0].name) return false
    }
    const r = node.box = el.getBoundingClientRect(), empty = r.width === 0 || r.height === 0
    if (!empty && away(r, node.fixed) && (node.act || leaf(node))) return false
    if (node.act) return !empty || kids.length > 0 || node.name !== '' && el.localName !== 'input'
    if (role === 'img') return node.name !== '' && !empty
    if (leaves.has(role)) return !empty
    if (bare.has(role) && !node.name) return (role === 'item' || role === 'article' || role === 'form') && kids.length > 1
    return kids.length > 0
  }

  // Names.
  const plainText = el => {
    if (!shown(el)) return clean(el.textContent)
    const sink = new Sink()
    descend(el, sink, NAMING | PLAIN)
    sink.end()
    return clean(wordsOf(sink.kids, true))
  }

  // ownName is the name an element is given, apart from what is in it.
  const ownName = (el, tag) => {
    const by = referred(el)
    if (by.length && !by.some(b => el !== b && el.contains(b) && shown(b))) return cut(clean(by.map(plainText).join(' ')), 200)
    let name = el.getAttribute('aria-label')
    switch (name?.trim() ? '' : tag) {
      case 'img': case 'area': name = el.alt; break
      case 'svg': name = el.querySelector(':scope > title')?.textContent; break
      case 'fieldset': name = onceSaid(el.querySelector(':scope > legend')); break
      case 'table': name = onceSaid(el.caption); break
      case 'input': name = el.type === 'image' ? el.alt : el.value || { submit: 'Submit', reset: 'Reset' }[el.type]; break
      case 'canvas': case 'video': case 'audio': case 'progress': case 'meter': name = el.title; break
    }
    return cut(clean(name ?? ''), 200)
  }

  // once: a caption is said as the name of what it belongs to.
  const onceSaid = el => {
    if (el) told.add(el)
    return el && plainText(el)
  }

  // nameOf a field, in the order in which names win.
  const nameOf = el => {
    const own = clean(referred(el).map(plainText).join(' ')) || clean(el.getAttribute('aria-label') ?? '')
    const words = own || clean(tapin.labelsOf(el).map(plainText).join(' ')) || clean(el.title || el.getAttribute('placeholder') || '')
    return cut(words || clean(el.getAttribute('name') || el.id || ''), 200)
  }

  const states = (el, role, tag) => {
    const out = [], aria = name => el.getAttribute('aria-' + name)
    if (el.localName === 'input' && el.type !== 'text' && !inputs[el.type]) out.push(el.type)
    if (role === 'textbox' && el.localName === 'textarea') out.push('multiline')
    const checked = el.indeterminate ? 'mixed' : el.localName === 'input' && ['checkbox', 'radio'].includes(el.type) ? String(el.checked) : aria('checked')
    if (checked === 'true') out.push('checked')
    if (checked === 'mixed') out.push('mixed')
    if (aria('pressed') === 'true') out.push('pressed')
    if (aria('selected') === 'true' || el.localName === 'option' && el.selected) out.push('selected')
    const open = tag === 'summary' && el.parentElement?.localName === 'details' ? String(el.parentElement.open) : aria('expanded')
    if (open) out.push(open === 'true' ? 'expanded' : 'collapsed')
    const current = aria('current')
    if (current && current !== 'false') out.push('current')
    if (el.matches(':disabled') || aria('disabled') === 'true') out.push('disabled')
    if (el.required || aria('required') === 'true') out.push('required')
    if (el.readOnly && role !== 'button' && fields.has(role) && !['checkbox', 'radio'].includes(role)) out.push('readonly')
    if (aria('invalid') && aria('invalid') !== 'false') out.push('invalid')
    if (el.matches(':focus')) out.push('focused')
    return out
  }

  // value: what stands in a field. Of a secret one only that there is something.
  const value = (node, el, role, tag) => {
    if (['checkbox', 'radio', 'switch'].includes(role)) return
    if (tapin.secret(el)) {
      if (tag === 'select' ? el.selectedIndex > 0 : tag === 'input' || tag === 'textarea' ? el.value !== '' : el.textContent !== '') node.value = '‹hidden›'
      return
    }
    if (tag === 'select') {
      const all = [...el.options].map(o => clean(o.label || o.text)), chosen = [...el.selectedOptions].map(o => clean(o.label || o.text))
      node.value = cut(chosen.join(', '), 200)
      const shownOptions = all.slice(0, 12).map(o => cut(o, 40))
      if (all.length > 1) node.options = shownOptions.join(' | ') + (all.length > 12 ? ` | … ${all.length - 12} more` : '')
      return
    }
    const raw = tag === 'input' && el.type === 'file' ? [...el.files].map(f => f.name).join(', ')
      : tag === 'input' || tag === 'textarea' ? el.value
        : el.getAttribute('aria-valuetext') ?? el.getAttribute('aria-valuenow') ?? (el.isContentEditable || role === 'textbox' || role === 'combobox' ? el.innerText : '')
    const text = cut(clean(raw ?? ''), 200)
    if (text) node.value = text
  }

  // settle takes out what has no meaning and says of each node whether it is in
  // view; what holds something that is in view is so too.
  const settle = (nodes, around) => {
    const out = []
    for (const node of nodes) {
      if (node.text) {
        const r = node.el.getBoundingClientRect(), none = r.width === 0 && r.height === 0
        if (!none && away(r, false)) continue
        node.seen = none ? around : seen(r)
        out.push(node)
        continue
      }
      node.seen ??= seen(node.box ??= node.el.getBoundingClientRect())
      node.kids = settle(node.kids, node.seen)
      for (const kid of node.cells?.flat() ?? []) kid.seen = node.seen
      node.seen ||= node.kids.some(k => k.seen)
      if (node.role === 'list' && !node.kids.length) continue
      out.push(node)
    }
    return out
  }

  // line is a node in words.
  const line = node => {
    if (node.cells) return node.role + ': ' + node.cells.map(c => c.map(k => k.text ?? line(k)).join(' ').replaceAll(' | ', ' ¦ ')).join(' | ')
    const name = node.name && (/ = | \{|^"/.test(node.name) ? JSON.stringify(node.name) : node.name)
    return (node.act || pointed.has(node.role) ? `[${tapin.refOf(node.el)}] ` : '') + node.role + (node.states?.length ? ' ' + node.states.join(' ') : '') +
      (name ? ': ' + name : '') + (node.value ? ' = ' + node.value : '') + (node.options ? ` {${node.options}}` : '')
  }

  // Long texts are lines of a sensible length, so that a cut loses little.
  const pieces = text => text.length <= 600 ? [text] : text.match(/.{1,500}(?:\s|$)|.{1,500}/gsu).map(s => s.trim()).filter(Boolean)

  const gather = () => {
    told = new WeakSet()
    opaque = unseated = false
    labelled(document)
    const sink = new Sink()
    const modal = [...document.querySelectorAll('dialog:modal')].filter(d => !d.parentElement?.closest('dialog:modal'))
    for (const root of modal.length ? modal : document.body ? [document.body] : []) walk(root, sink, 0)
    sink.end()
    return sink.kids
  }

  // outline answers with lines: depth, whether in view, words; for a frame its
  // number and the part of it in view; for what is over the limit how many lines
  // that is. What is in view and what comes first have the limit each.
  tapin.outline = ({ frame, from, heard, max, interactive, clip }) => {
    tapin.beginRefs(frame, from, heard)
    look(clip)
    const lines = []
    let inView = 0, inOrder = 0
    const add = (node, depth, say) => {
      if (inOrder >= max && !(node.seen && inView < max)) {
        const end = lines.at(-1)
        end?.more ? end.more++ : lines.push({ more: 1 })
        return
      }
      const words = say(), at = { depth, seen: node.seen, text: words }
      if (node.frame) Object.assign(at, { frame: node.frame, clip: sight(node.el) })
      lines.push(at)
      inOrder += words.length + 2 * depth + 1
      if (node.seen) inView += words.length + 2 * depth + 1
    }
    const tell = (node, depth) => {
      if (node.text) for (const piece of pieces(node.text)) add(node, depth, () => '> ' + piece)
      else {
        if (node.role === 'item' && node.kids.length === 1 && !node.name) return tell(node.kids[0], depth)
        add(node, depth, () => line(node))
        for (const kid of node.kids) tell(kid, depth + 1)
      }
    }
    const flatly = node => {
      if (node.text) return
      if (node.act && node.long) node.name = cut(node.long, 100)
      if (node.act || node.frame) add(node, 0, () => line(node))
      for (const kid of node.cells?.flat() ?? node.kids) flatly(kid)
    }
    for (const node of settle(gather(), true)) interactive ? flatly(node) : tell(node, 0)
    tapin.forgetLabels()
    return { lines, last: tapin.lastRef(), opaque, unseated, url: location.href, title: document.title }
  }

  // sight is the part of a frame that is in view, as the frame counts.
  const sight = el => {
    const h = tapin.hole(el), inside = (v, zero) => (v - zero) / h.scale
    return {
      left: inside(Math.max(view.left, h.x), h.x), top: inside(Math.max(view.top, h.y), h.y),
      right: inside(Math.min(view.right, h.x + h.width), h.x), bottom: inside(Math.min(view.bottom, h.y + h.height), h.y),
    }
  }

  // What reading the text needs of all this.
  tapin.eyes = { look, away, strays, shown, drawn, styleOf, clipped, each, skipped, frameTags, frameOwner, isHeading, dataTable, canHost, suspect, begin: () => { opaque = false }, opaque: () => opaque }
})(globalThis.tapin ??= {})
