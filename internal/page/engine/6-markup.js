// A copy of what a page shows, in a document of its own that nobody sees: only
// what is drawn, only tags that say what their content is, addresses in full.
// Nothing in the copy loads or runs.
(tapin => {
  if (tapin.markup) return

  const { eyes, plain } = tapin

  const kept = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'ul', 'ol', 'li', 'blockquote', 'pre', 'code', 'strong', 'b', 'em', 'i', 'del', 's', 'a', 'img',
    'table', 'thead', 'tbody', 'tfoot', 'tr', 'th', 'td', 'caption', 'br', 'hr', 'dl', 'dt', 'dd', 'figure', 'figcaption', 'article', 'main', 'section', 'aside', 'sup', 'sub'])
  const tabular = new Set(['table', 'thead', 'tbody', 'tfoot', 'tr', 'th', 'td', 'caption'])
  const controls = new Set(['select', 'textarea', 'input', 'button', 'svg', 'canvas', 'audio', 'video', 'progress', 'meter', 'dialog'])

  // What leads around a site or operates it is not what a page says.
  const aroundTags = new Set(['nav', 'footer'])
  const aroundRoles = new Set(['navigation', 'menu', 'menubar', 'toolbar', 'search', 'contentinfo', 'tablist', 'button'])
  const around = (el, tag, inArticle) => tag === 'footer' ? !inArticle : aroundTags.has(tag) || aroundRoles.has(plain.attribute(el, 'role')?.trim().toLowerCase())

  const deepest = 400, deepestList = 12, longestAddress = 2000

  const web = url => /^(https?|mailto|tel):/i.test(url) && url.length <= longestAddress

  // copy makes the copy of some elements. names keeps classes and ids, by which
  // articles are told from the rest; a number in data-frame stands for a frame.
  const copy = (els, { max, mostElements, clutter, names }) => {
    const made = document.implementation.createHTMLDocument('')
    const make = tag => Document.prototype.createElement.call(made, tag)
    let size = 0, count = 0, over = false
    const full = () => over ||= size > max || count > mostElements
    const write = (text, to) => {
      to.append(text)
      size += text.length
    }
    const open = (el, tag, to) => {
      count++
      const out = make(tag)
      if (tag === 'a') {
        const href = plain.attribute(el, 'href'), url = href === null ? '' : tapin.absolute(el, href)
        if (!web(url)) return to
        out.setAttribute('href', url)
        size += url.length
      }
      for (const name of ['colspan', 'rowspan', 'start']) if (/^\d{1,3}$/.test(plain.attribute(el, name) ?? '')) out.setAttribute(name, plain.attribute(el, name))
      if (names) for (const name of ['class', 'id', 'role', 'itemprop', 'rel']) if (plain.attribute(el, name)) out.setAttribute(name, plain.attribute(el, name).slice(0, 200))
      to.append(out)
      return out
    }
    const picture = (el, to) => {
      const alt = (plain.attribute(el, 'alt') ?? '').replace(/\s+/g, ' ').trim(), url = tapin.absolute(el, el.currentSrc || plain.attribute(el, 'src') || ''), r = plain.box(el)
      if (!alt && (r.width < 64 || r.height < 64)) return // decoration
      if (!/^https?:/i.test(url) || !web(url)) return alt ? write(alt, to) : undefined
      const out = open(el, 'img', to)
      out.setAttribute('src', url)
      out.setAttribute('alt', alt)
      size += url.length + alt.length
    }
    const walk = (el, to, env) => {
      const tag = plain.tag(el)
      if (tag === 'br') return to.append(make('br'))
      if (full() || eyes.skipped.has(tag) || controls.has(tag) && !(tag === 'dialog' && el.open)) return
      const cs = getComputedStyle(el), how = eyes.drawn(el, cs)
      if (!how || eyes.clipped(el, cs) || plain.attribute(el, 'aria-hidden') === 'true' && !plain.first(el)) return
      if (!clutter && around(el, tag, env.article) || plain.attribute(el, 'contenteditable') !== null && tapin.secret(el)) return
      if (eyes.frameOwner(el)) {
        if (how === 2 && tapin.heldBy(el) && plain.box(el).width > 2) {
          const frame = make('div')
          frame.setAttribute('data-frame', tapin.heldBy(el))
          to.append(frame)
        }
        return
      }
      if (tag === 'img') return how === 2 ? picture(el, to) : undefined
      if (env.depth > deepest) return void (over = true)
      const list = tag === 'ul' || tag === 'ol' || tag === 'blockquote'
      const data = tag === 'table' ? eyes.dataTable(el) : env.data
      const block = !cs.display.startsWith('inline') && cs.display !== 'contents'
      const as = tabular.has(tag) && !data || list && env.lists >= deepestList ? 'div' : kept.has(tag) ? tag : names ? (block ? 'div' : 'span') : block ? 'div' : ''
      const inside = as ? open(el, as, to) : to
      const pre = env.pre || tag === 'pre'
      const inner = { depth: env.depth + 1, data, pre, lists: env.lists + (list ? 1 : 0), article: env.article || tag === 'article' || tag === 'main' || tag === 'section' }
      const before = size
      eyes.each(el, child => {
        if (plain.kind(child) === Node.ELEMENT_NODE) walk(child, inside, inner)
        else if (plain.kind(child) === Node.TEXT_NODE && how === 2 && child.data && !full()) {
          const r = plain.box(el)
          if (!(r.width > 0 && eyes.away(r, false)) && cs.fontSize !== '0px') write(pre ? child.data : child.data.replace(/\s+/g, ' '), inside)
        }
      })
      if (eyes.canHost.test(tag) && !tapin.shadow(el)) eyes.suspect(el, tag, size === before)
      if (!as && cs.display.startsWith('inline-')) write(' ', to)
    }
    const body = Object.getOwnPropertyDescriptor(Document.prototype, 'body').get.call(made)
    for (const el of els) walk(el, body, { depth: 0, data: false, pre: false, lists: 0, article: false })
    return { made, body, over: full(), words: body.textContent.trim() !== '' || body.querySelector('img,[data-frame]') !== null }
  }

  // parts is the copy as HTML, a number where a frame is.
  const parts = body => body.innerHTML.split(/<div data-frame="(\d+)"><\/div>/).map((part, i) => i % 2 ? Number(part) : part)

  // markup is the page, or what was selected, as plain HTML.
  tapin.markup = ({ all, steps, max }) => {
    const bad = tapin.badSelection(all)
    if (bad) return { bad }
    eyes.look()
    eyes.begin()
    const got = tapin.follow(steps, places => {
      const whole = places[0] === document, els = whole ? [plain.body(document)].filter(Boolean) : tapin.outermost(places)
      const options = { max, mostElements: 60000, clutter: !whole }
      let made = copy(els, options)
      if (!made.words && whole) made = copy(els, { ...options, clutter: true })
      return made.words ? { parts: parts(made.body), over: made.over, matches: places.length } : { blank: places.length, none: -1 }
    })
    return { ...got, opaque: eyes.opaque(), here: tapin.here() }
  }

  // article is the main content of the page, for which somebody else knows the way.
  tapin.article = ({ max }) => {
    if (!tapin.Readability) return { missing: true }
    eyes.look()
    eyes.begin()
    const body = plain.body(document), made = copy(body ? [body] : [], { max: 2e6, mostElements: 10000, clutter: true, names: true })
    made.made.title = document.title
    for (const frame of made.body.querySelectorAll('[data-frame]')) frame.remove()
    const found = made.words ? new tapin.Readability(made.made, { charThreshold: 200 }).parse() : null
    if (!found?.textContent?.trim()) return { none: -1, opaque: eyes.opaque(), here: tapin.here() }
    const html = found.content.slice(0, 8 * max)
    return { parts: [html], title: found.title ?? '', over: made.over || html !== found.content, opaque: eyes.opaque(), here: tapin.here(), matches: 1 }
  }
})(globalThis.tapin ??= {})
