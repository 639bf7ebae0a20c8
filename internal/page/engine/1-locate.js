// Finding the element that somebody means: by selector, by what is written on
// it, by its label or its role; also inside shadow roots.
(tapin => {
  if (tapin.keep) return

  const asMade = tapin.plain

  // Elements that were named to the outside. Weak, so that nothing of the page
  // lives on for our sake. Ids start anywhere: one from another document means
  // nothing here.
  const bound = 20000
  const kept = new Map()
  const ids = new WeakMap()
  let last = Math.floor(Math.random() * 2 ** 31) * 2 ** 16

  tapin.keep = el => {
    let id = ids.get(el)
    if (id === undefined || !kept.has(id)) {
      id ??= ++last
      ids.set(el, id)
      kept.set(id, new WeakRef(el))
      if (kept.size > bound) kept.delete(kept.keys().next().value)
    }
    return id
  }

  tapin.kept = id => kept.get(id)?.deref() ?? null

  // Closed shadow roots, which scripts cannot see, as far as we were handed them.
  const closed = new WeakMap()

  tapin.adopt = (host, root) => {
    if (closed.get(host) === root) return false
    closed.set(host, root)
    return true
  }

  tapin.shadow = el => asMade.shadow(el) ?? closed.get(el) ?? null

  // above is the next node on the way up as the page is drawn: slots and hosts count.
  tapin.above = node => {
    const kind = asMade.kind(node), slot = kind === Node.ELEMENT_NODE ? asMade.slot(node) : kind === Node.TEXT_NODE ? asMade.textSlot(node) : null
    if (slot) return slot
    const parent = asMade.parent(node), root = parent && closed.get(parent)
    if (root) {
      for (const slot of root.querySelectorAll('slot')) if (slot.assignedNodes().includes(node)) return slot
    }
    return parent ?? (kind === Node.DOCUMENT_FRAGMENT_NODE ? node.host : null) ?? null
  }

  // within tells whether a node is the element or drawn inside it.
  tapin.within = (node, el) => {
    for (; node; node = tapin.above(node)) if (node === el) return true
    return false
  }

  const upTo = (node, is) => {
    for (; node; node = tapin.above(node)) if (node.nodeType === Node.ELEMENT_NODE && is(node)) return node
    return null
  }

  // roots are the document and every shadow root in it, outer ones first.
  tapin.roots = () => {
    const roots = [document]
    for (let i = 0; i < roots.length; i++) {
      const walk = document.createTreeWalker(roots[i], NodeFilter.SHOW_ELEMENT)
      for (let el = walk.nextNode(); el; el = walk.nextNode()) {
        const root = tapin.shadow(el)
        if (root) roots.push(root)
      }
    }
    return roots
  }

  // boxes are where an element is drawn: several when it runs over lines. One
  // without a box of its own is where its content is.
  tapin.boxes = el => {
    const solid = list => [...list].filter(r => r.width > 0 && r.height > 0)
    const own = solid(el.getClientRects())
    if (own.length || getComputedStyle(el).display !== 'contents') return own
    const range = document.createRange()
    range.selectNodeContents(el)
    return solid(range.getClientRects())
  }

  // visible: it has a box and is not switched off. How opaque it is does not
  // matter, as pages lay transparent inputs over drawn ones.
  tapin.visible = el => {
    if (!el.isConnected || getComputedStyle(el).visibility !== 'visible') return false
    if (el.checkVisibility && !el.checkVisibility() && getComputedStyle(el).display !== 'contents') return false
    return tapin.boxes(el).length > 0
  }

  // surface is what a person would click to operate the element: a control that
  // is hidden is worked by its label.
  tapin.surface = el => {
    if (el.labels && !tapin.visible(el)) for (const label of el.labels) if (tapin.visible(label)) return label
    return el
  }

  const collapse = s => s.replace(/\s+/g, ' ').trim()
  const squash = s => s.replace(/\s+/g, '')
  const fold = s => collapse(s).toLowerCase()

  tapin.fold = fold

  const clickableRoles = new Set(['button', 'link', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'checkbox', 'radio',
    'switch', 'option', 'treeitem', 'combobox', 'textbox', 'searchbox', 'slider', 'spinbutton', 'gridcell'])
  const clickableTags = 'a[href],area[href],button,input:not([type=hidden]),select,textarea,label,summary,option,[onclick],[contenteditable=""],[contenteditable=true],[tabindex]:not([tabindex="-1"])'

  // clickable is what says of itself that it does something.
  tapin.clickable = el => el.matches(clickableTags) || clickableRoles.has(el.getAttribute('role'))

  const looksClickable = el => getComputedStyle(el).cursor === 'pointer'

  // spoken is what an element shows, or says to those who cannot see it, beside its text.
  const spoken = el => {
    const out = []
    if (el.localName === 'input' && ['submit', 'button', 'reset'].includes(el.type)) {
      out.push(el.value || { submit: 'Submit', reset: 'Reset' }[el.type] || '')
    }
    if (el.placeholder && !el.value) out.push(el.placeholder)
    for (const name of ['aria-label', 'alt']) if (el.hasAttribute(name)) out.push(el.getAttribute(name))
    return out
  }

  const unread = new Set(['script', 'style', 'noscript', 'template', 'title', 'head', 'select', 'textarea'])

  // letters is all text of a root without its whitespace, and which node each
  // part comes from: the one form in which text split over nodes is still whole.
  const letters = root => {
    const nodes = [], starts = []
    let text = ''
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, node =>
      node.nodeType === Node.ELEMENT_NODE ? unread.has(node.localName) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP : NodeFilter.FILTER_ACCEPT)
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const part = squash(node.data).toLowerCase()
      if (!part) continue
      nodes.push(node)
      starts.push(text.length)
      text += part
    }
    return { text, nodes, starts }
  }

  const nodeAt = ({ nodes, starts }, at) => {
    let low = 0, high = starts.length - 1
    while (low < high) {
      const mid = (low + high + 1) >> 1
      if (starts[mid] <= at) low = mid
      else high = mid - 1
    }
    return nodes[low]
  }

  const written = el => fold(el.innerText ?? el.textContent ?? '')

  // holders are the smallest elements in which the wanted words stand, as words:
  // what only matches without its whitespace does not count.
  const holders = (root, want) => {
    const all = letters(root), needle = squash(want), found = new Set()
    for (let at = all.text.indexOf(needle); at >= 0 && found.size < 500; at = all.text.indexOf(needle, at + 1)) {
      const first = nodeAt(all, at), end = nodeAt(all, at + needle.length - 1)
      let el = first.parentElement ?? first.parentNode.host
      if (first === end) {
        if (el && fold(first.data).includes(want)) found.add(el)
        continue
      }
      while (el && !el.contains(end)) el = el.parentElement
      if (el && !found.has(el) && (written(el).includes(want) || fold(el.textContent).includes(want))) found.add(el)
    }
    return [...found]
  }

  // byText answers with the thing to click and the place where the words are.
  const byText = want => {
    want = fold(want)
    if (!want) return []
    const out = []
    const add = (aim, exactly) => {
      const near = upTo(aim, tapin.clickable)
      const el = near && near !== document.body ? near : aim
      const exact = el === aim ? exactly : exactly || written(el) === want
      out.push({ el, aim, exact, score: (el !== aim && exact && written(el) !== want ? 1 : 0) + (near || looksClickable(aim) ? 0 : 2) })
    }
    for (const root of tapin.roots()) {
      for (const el of holders(root, want)) add(el, written(el) === want)
      for (const el of root.querySelectorAll('input,[placeholder],[aria-label],[alt]')) {
        const said = spoken(el).map(fold).filter(s => s.includes(want))
        if (said.length) add(el, said.includes(want))
      }
    }
    return out
  }

  const controls = 'input:not([type=hidden]),textarea,select,button,meter,output,progress,[contenteditable=""],[contenteditable=true],[role=textbox],[role=combobox],[role=checkbox],[role=radio],[role=switch],[role=slider],[role=spinbutton],[role=searchbox],[role=listbox]'

  const referred = (el, attribute) => (el.getAttribute(attribute) ?? '').split(/\s+/).filter(Boolean)
    .map(id => el.getRootNode().getElementById?.(id)).filter(Boolean)

  // labelText leaves out what a control inside the label shows itself.
  const labelText = label => {
    const copy = label.cloneNode(true)
    for (const inner of copy.querySelectorAll('select,textarea,script,style')) inner.remove()
    return fold(copy.textContent)
  }

  const labelsOf = el => [
    ...[...el.labels ?? []].map(labelText),
    fold(referred(el, 'aria-labelledby').map(l => l.textContent).join(' ')),
    fold(el.getAttribute('aria-label') ?? ''), fold(el.getAttribute('placeholder') ?? ''), fold(el.getAttribute('title') ?? ''),
  ]

  // Labels often end in a star or a colon that nobody would say.
  const plain = s => s.replace(/[\s*:]+$/, '')

  const byLabel = want => {
    want = fold(want)
    const out = []
    if (!want) return out
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll(controls)) {
        const labels = labelsOf(el)
        const at = labels.findIndex(l => l === want || plain(l) === plain(want))
        if (at >= 0) out.push({ el, exact: true, score: 0 })
        else if (labels.some(l => l.includes(want))) out.push({ el, exact: false, score: 0 })
      }
    }
    return out
  }

  const inputRoles = { button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox' }
  const tagRoles = { button: 'button', summary: 'button', textarea: 'textbox', option: 'option', img: 'img', ul: 'list', ol: 'list', menu: 'list', li: 'listitem',
    nav: 'navigation', main: 'main', article: 'article', aside: 'complementary', dialog: 'dialog', table: 'table', tr: 'row', td: 'cell', th: 'columnheader',
    form: 'form', fieldset: 'group', details: 'group', progress: 'progressbar', meter: 'meter', output: 'status', hr: 'separator', p: 'paragraph',
    header: 'banner', footer: 'contentinfo', section: 'region', h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading' }

  const roleOf = el => {
    const said = el.getAttribute('role')?.trim().split(/\s+/)[0]
    if (said) return said.toLowerCase()
    switch (el.localName) {
      case 'a': case 'area': return el.hasAttribute('href') ? 'link' : ''
      case 'input': return el.hasAttribute('list') ? 'combobox' : inputRoles[el.type] ?? (el.type === 'hidden' ? '' : 'textbox')
      case 'select': return el.multiple || el.size > 1 ? 'listbox' : 'combobox'
    }
    return tagRoles[el.localName] ?? (el.isContentEditable && !el.parentElement?.isContentEditable ? 'textbox' : '')
  }

  // nameOf is what the element is called, in the order in which names win.
  const nameOf = el => {
    const by = fold(referred(el, 'aria-labelledby').map(l => l.innerText ?? l.textContent).join(' '))
    if (by) return by
    const own = fold(el.getAttribute('aria-label') ?? '')
    if (own) return own
    if (el.labels?.length) return fold([...el.labels].map(labelText).join(' '))
    const shown = spoken(el).map(fold).find(Boolean)
    if (shown) return shown
    if (!['input', 'select', 'textarea'].includes(el.localName)) {
      const pictures = [...el.querySelectorAll('[alt],[aria-label],svg title')].map(i => i.getAttribute('aria-label') ?? i.getAttribute('alt') ?? i.textContent)
      const text = written(el) || fold(pictures.join(' ')) || fold(tapin.shadow(el)?.textContent ?? '')
      if (text) return text
    }
    return fold(el.getAttribute('title') ?? '')
  }

  const byRole = (role, name) => {
    role = fold(role)
    const want = fold(name ?? ''), out = []
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll('*')) {
        if (roleOf(el) !== role) continue
        const is = want ? nameOf(el) : ''
        if (is.includes(want)) out.push({ el, exact: is === want, score: 0 })
      }
    }
    return out
  }

  const inEach = query => {
    const out = []
    for (const root of tapin.roots()) for (const el of query(root)) out.push({ el, exact: true, score: 0 })
    return out
  }

  // steps splits a selector at its spaces; null when it has other combinators.
  const steps = css => {
    const out = css.trim().match(/(?:\[[^\]]*\]|\((?:[^()]|\([^()]*\))*\)|"[^"]*"|'[^']*'|[^\s>+~,])+|[>+~,]/g) ?? []
    return out.length > 1 && !out.some(s => /^[>+~,]$/.test(s)) ? out : null
  }

  // byCSS asks each root for itself; where that finds nothing, "host inner"
  // means what it says across the border of the shadow root too.
  const byCSS = css => {
    const out = inEach(root => root.querySelectorAll(css))
    const parts = out.length ? null : steps(css)
    if (!parts) return out
    const tail = parts.pop()
    return inEach(root => root === document ? [] : [...root.querySelectorAll(tail)].filter(el => {
      let node = tapin.above(el)
      for (const part of [...parts].reverse()) {
        node = upTo(node, n => n.matches(part))
        if (!node) return false
        node = tapin.above(node)
      }
      return true
    }))
  }

  const testIDs = ['data-testid', 'data-test', 'data-test-id', 'data-qa']
  const byTestID = id => inEach(root => root.querySelectorAll(testIDs.map(a => `[${a}=${CSS.escape(id)}]`).join()))

  // XPath stops at shadow roots: there it is asked of each tree inside.
  const byXPath = xpath => inEach(root => {
    const inner = xpath.replace(/^\/\/(?!.*::)/, 'descendant-or-self::').replace(/^\//, './/')
    const from = root === document ? [[document, xpath]] : [...root.children].map(c => [c, inner])
    return from.flatMap(([node, path]) => {
      const got = document.evaluate(path, node, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE)
      return Array.from({ length: got.snapshotLength }, (_, i) => got.snapshotItem(i)).filter(n => n.nodeType === Node.ELEMENT_NODE)
    })
  })

  const matches = l => l.css ? byCSS(l.css) : l.text ? byText(l.text) : l.label ? byLabel(l.label) : l.test_id ? byTestID(l.test_id)
    : l.xpath ? byXPath(l.xpath) : byRole(l.role, l.name)

  // best is the match that a person would mean: visible before hidden, exact
  // before partial, what can be clicked before what cannot, then the first one.
  // Its rank is comparable between frames: 0 is as good as it gets.
  tapin.best = l => {
    if (l.css) {
      // The usual case needs no walk through the whole document.
      for (const el of document.querySelectorAll(l.css)) if (tapin.visible(tapin.surface(el))) return { el, aim: el, rank: 0 }
    }
    let best = null
    for (const m of matches(l)) {
      const score = (m.exact ? 0 : 10) + m.score
      if (best?.seen && best.score <= score) continue
      const seen = tapin.visible(tapin.surface(m.aim ?? m.el))
      if (best && (best.seen && !seen || best.seen === seen && best.score <= score)) continue
      best = { el: m.el, aim: m.aim ?? m.el, seen, score }
      if (seen && score === 0) break
    }
    return best && { el: best.el, aim: best.aim, rank: (best.seen ? 0 : 2) + (best.score >= 10 ? 1 : 0) }
  }

  // find says how well the frame's best match is, and keeps it. A locator that
  // makes no sense is the caller's mistake, not the page's.
  tapin.find = ({ locator }) => {
    try {
      const hit = tapin.best(locator)
      return hit ? { id: tapin.keep(hit.el), rank: hit.rank } : { rank: -1 }
    } catch (e) {
      return { rank: -1, bad: badLocator(e) }
    }
  }

  const badLocator = e => {
    if (e instanceof DOMException && ['SyntaxError', 'NotSupportedError', 'NamespaceError', 'InvalidExpressionError'].includes(e.name)) return e.name
    throw e
  }
  tapin.badLocator = badLocator

  // called is what a person would call a kept element: what it is and what it
  // says, never what was typed into it.
  const plainly = { textbox: 'field', searchbox: 'field', spinbutton: 'field', combobox: 'list', listbox: 'list', img: 'picture', '': 'element' }
  tapin.called = ({ id }) => {
    const el = tapin.kept(id)
    if (!el) return null
    const role = roleOf(el)
    return { is: plainly[role] ?? role, says: nameOf(el).slice(0, 80) }
  }

  // describe names an element as a developer would, without anything typed into it.
  tapin.describe = el => {
    let out = el.localName
    if (el.id) out += '#' + el.id.slice(0, 40)
    else if (typeof el.className === 'string' && el.className.trim()) out += '.' + el.className.trim().split(/\s+/).slice(0, 2).join('.').slice(0, 60)
    return out
  }
})(globalThis.tapin ??= {})
