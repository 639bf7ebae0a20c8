// Money on the page: what would be paid by a click, what sums are shown, and a
// gate that lets through only what was judged.
(tapin => {
  if (tapin.payIntent) return

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

  // lines are the visible texts of the document, a piece for each block, outside
  // of whatever can be typed into. Digits that meet without a space are joined
  // by a mark: raised cents are no thousands.
  const lines = () => {
    const out = []
    let text = '', owner = null
    const end = () => {
      const line = text.replace(/[ \t\n\r\f]+/g, ' ').trim()
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
      const inline = /^(?:inline|contents|ruby)/.test(getComputedStyle(node).display) && !button(node) && !(tag === 'a' && hasSum(text))
      if (!inline) end()
      const root = tapin.shadow(node)
      if (root) for (const child of root.childNodes) walk(child, depth + 1)
      else if (tag === 'slot' && node.assignedNodes().length) for (const child of node.assignedNodes()) walk(child, depth + 1)
      else for (let child = tapin.plain.first(node); child; child = tapin.plain.next(child)) walk(child, depth + 1)
      if (!inline) end()
    }
    if (document.body) walk(tapin.plain.body(document), 0)
    end()
    return out
  }

  const letters = /\p{L}{2}/u
  const hasSum = s => /\d/.test(s) && /[\p{Sc}円元원]|(?<!\p{L})(?:[A-Z]{3}|kr\.?|zł|Kč|Ft|Fr\.|Rs\.?|RM|Rp|euros?|dollars?)(?!\p{L})/u.test(s)

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

  // pressed tells whether a sum stands on the button that takes it.
  const pressed = (el, known) => {
    const by = up(el, button)
    return Boolean(by && weigh(by, null, known).pays)
  }

  // beside are the sums, by their place, that stand alone with a button that
  // takes them: where nothing is called a total, that is what it takes.
  const beside = (at, sums) => {
    if (!at.length) return []
    const takes = tapin.roots().flatMap(root => [...root.querySelectorAll('button,[role=button],input[type=submit]')]).slice(0, 200)
      .filter(el => tapin.visible(el) && meant(saying(el)).some(s => words.surely.some(w => w.test(s))))
    if (takes.length !== 1) return []
    for (let node = takes[0]; node; node = tapin.above(node)) {
      const inside = at.flatMap((el, i) => tapin.within(el, node) ? [i] : [])
      if (inside.length) return inside.every(i => sums[i].text === sums[inside[0]].text) ? inside : []
    }
    return []
  }

  // paySums are the sums that the document shows, with what stands beside them.
  tapin.paySums = ({ names }) => {
    const all = lines(), echo = echoes(), at = []
    let around
    const known = () => around ??= evidence()
    const sums = []
    for (let i = 0; i < all.length && sums.length < 300; i++) {
      const { text, el } = all[i]
      if (!hasSum(text)) continue
      const own = text.replace(/[^\p{L}]/gu, '').length > 4
      const label = own ? '' : labelOf(all, i)
      sums.push({ text: clip(text, 200), label: clip(label, 100), echo: echo(label, text), button: pressed(el, known), box: boxOf(el) })
      at.push(el)
    }
    for (const i of beside(at, sums)) sums[i].beside = true
    // Names are looked for where nobody typed them.
    const squash = s => fold(s).replace(/[^\p{L}\p{N}]+/gu, '')
    const whole = squash(all.map(l => l.text).join(' '))
    return {
      origin: self.origin, sums, language: document.documentElement.lang || '', host: location.hostname,
      names: (names ?? []).map(n => { const s = squash(n); return s.length > 1 && whole.includes(s) }),
    }
  }

  const forCard = el => {
    if (el.localName !== 'input' || !tapin.visible(el)) return false
    const says = [el.autocomplete, el.name, el.id, el.placeholder, el.getAttribute('aria-label'), ...[...el.labels ?? []].map(l => l.textContent)].map(s => (s ?? '').trim())
    return /^cc-(?:number|exp|csc)/.test(says[0]) || says.some(s => s && words.cardField.test(s))
  }

  // sendsCard tells a button that sends a form with a card in it: beside a total
  // that pays, in whatever words and language.
  const sendsCard = el => el.type === 'submit' && Boolean(el.form) && [...el.form.elements].some(forCard)

  // evidence is how much the document looks as if it was about to take money.
  const evidence = () => {
    const all = lines()
    let card = false, sum = false
    for (const root of tapin.roots()) if ([...root.querySelectorAll('input')].some(forCard)) card = true
    const says = (list, text) => list.some(w => w.test(text))
    for (let i = 0; i < all.length && !sum; i++) {
      const text = all[i].text
      if (!hasSum(text)) continue
      const label = fold(text.replace(/[^\p{L}]/gu, '').length > 4 ? text : `${labelOf(all, i)} ${text}`)
      if (calls(label) && !/sub-?total|zwischensumme|sous-total/.test(label)) sum = true
    }
    const text = fold(document.title + ' ' + all.map(l => l.text).join(' \n '))
    const about = words.about.reduce((n, w) => n + (says([w], text) ? 1 : 0), 0)
    return { card, sum, about: about > 0 }
  }

  tapin.payEvidence = () => evidence()

  const control = el => up(el, n => tapin.clickable(n) && n.localName !== 'label') ?? up(el, n => n.localName === 'label')?.control ?? up(el, n => getComputedStyle(n).cursor === 'pointer' && (n.innerText ?? '').length < 80) ?? el

  // drawn is the text of a part of a component with what the page hung into it.
  const drawn = node => {
    if (node.nodeType === Node.TEXT_NODE) return node.data
    if (node.nodeType !== Node.ELEMENT_NODE || unread.has(node.localName)) return ''
    const hung = node.localName === 'slot' ? node.assignedNodes() : []
    return [...hung.length ? hung : node.childNodes].map(drawn).join(' ')
  }

  const saying = el => {
    const said = []
    if (el.localName === 'input') said.push(['submit', 'button', 'reset', 'image'].includes(el.type) ? el.value || el.alt || (el.type === 'submit' ? 'submit' : '') : '')
    for (const id of (el.getAttribute('aria-labelledby') ?? '').split(/\s+/)) if (id) said.push(el.getRootNode().getElementById?.(id)?.textContent ?? '')
    said.push(el.getAttribute('aria-label') ?? '', el.localName === 'input' ? '' : el.querySelector?.('slot') ? drawn(el) : el.innerText ?? el.textContent ?? '', el.title ?? '')
    for (const img of el.querySelectorAll?.('img[alt]') ?? []) said.push(img.alt)
    return [...new Set(said.map(s => clip(fold(s), 160)).filter(Boolean))]
  }

  const isField = el => el.localName === 'select' || el.localName === 'textarea' || el.isContentEditable ||
    el.localName === 'input' && !['submit', 'button', 'image', 'reset'].includes(el.type)

  // leads tells a link that goes elsewhere and sends nothing.
  const leads = el => {
    const a = el.closest?.('a[href]')
    if (!a) return false
    const to = a.getAttribute('href').trim()
    return !/^(?:#|javascript:|$)/i.test(to)
  }

  // guides tells a link of the site's own menu: it is there on every page.
  const guides = el => leads(el) && Boolean(up(el, n => n.localName === 'nav' || n.getAttribute('role') === 'navigation' || n.getAttribute('role') === 'menubar'))

  const patterns = list => (list ?? []).flatMap(p => { try { return [new RegExp(p, 'iu')] } catch { return [] } })

  // meant is what is said on a button, and the same without what it costs and when.
  const meant = said => {
    const short = said.filter(s => s.length <= 90).map(s => s.replace(/[→›»▸➔✓✔🔒]/gu, '').trim())
    const bare = short.map(s => s.replace(words.priced, ' ').replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
    return [...new Set([...short, ...bare, ...bare.map(s => s.replace(words.when, ''))].filter(s => s && !/^[^\p{L}]*$/u.test(s)))]
  }

  const judge = (el, o) => {
    const it = weigh(el, o)
    if (it.pays) it.mark = mark(it)
    return it
  }

  // weigh says whether working the element pays. What the button says decides,
  // and where that is not enough, what is around it.
  const weigh = (el, o, known) => {
    const it = { pays: false, label: '', why: [], name: tapin.describe(el) }
    if (isField(el)) return it
    const said = saying(el)
    it.label = said[0] ?? ''
    const own = patterns(o?.patterns)
    if (said.some(s => own.some(p => p.test(s)))) return { ...it, pays: true, sure: true, why: ['a pattern of the owner'] }
    const short = meant(said)
    const sure = short.some(s => words.surely.some(w => w.test(s)))
    const maybe = !sure && short.some(s => words.maybe.some(w => w.test(s)) && !words.never.test(s))
    const sends = !sure && !maybe && sendsCard(el) && !short.some(s => words.never.test(s))
    if (!sure && !maybe && !sends) return it
    const around = { ...known?.() ?? evidence() }
    if (o?.card) around.card = true
    if (o?.sum || maybe && said.some(s => words.priced.test(s))) around.sum = true
    if (around.card) it.why.push('fields for a card')
    if (around.sum) it.why.push('a total')
    if (around.about) it.why.push('words about payment')
    it.sure = sure
    const points = (around.card ? 2 : 0) + (around.sum ? 1 : 0) + (around.about ? 1 : 0)
    const buys = short.some(s => words.buys.test(s))
    if (guides(el) || maybe && !buys && leads(el) && !around.card) return it // another page asks first
    it.pays = sure ? !leads(el) || around.sum || around.card : sends ? around.sum : around.sum && (points >= 2 || buys) || around.card && points >= 2
    if (maybe && short.some(s => /^(?:continue|weiter|continuer|continuar|continua|doorgaan|ok|okay|yes|ja|next|下一步|次へ)$/.test(s))) it.pays = around.sum && points >= 3 && !leads(el)
    return it
  }

  // mark is what was judged: the words on the button and the totals around it.
  const mark = it => {
    const all = lines(), out = [it.label]
    for (let i = 0; i < all.length; i++) {
      if (!hasSum(all[i].text)) continue
      const label = fold(`${labelOf(all, i)} ${all[i].text}`)
      if (calls(label)) out.push(label)
    }
    return clip(out.join('\n'), 4000)
  }

  // payStill tells whether the document is as it was when it was judged: then
  // nobody can say yet that it was paid. A button that only says "please wait"
  // has not gone on.
  tapin.payStill = ({ mark: was, id }) => {
    const [label, ...totals] = was.split('\n')
    if (totals.length) return mark({ label }) === was
    const el = id ? tapin.kept(id) : null
    return Boolean(el?.isConnected && tapin.visible(el))
  }

  // payAnswered tells a server's answer from an error of its own or the browser's.
  tapin.payAnswered = () => location.protocol !== 'chrome-error:' && !(performance.getEntriesByType('navigation')[0]?.responseStatus >= 400)

  // submitter is what Enter presses: the first button that sends the form.
  const submitter = form => [...form.elements].find(e => (e.localName === 'button' && e.type === 'submit' || e.localName === 'input' && ['submit', 'image'].includes(e.type)) && !e.disabled) ?? null

  // byForm judges a form that is about to be sent.
  const byForm = (form, by, o) => {
    const via = by ?? submitter(form)
    if (via) return judge(via, o)
    const around = evidence()
    const it = { pays: false, label: '', why: ['a form that is sent'], name: tapin.describe(form) }
    it.pays = around.card && (around.sum || around.about) && [...form.elements].some(forCard)
    if (it.pays) it.mark = mark(it)
    return it
  }

  const focused = () => {
    let el = document.activeElement
    while (el && tapin.shadow(el)?.activeElement) el = tapin.shadow(el).activeElement
    return el && el !== document.body && !['iframe', 'frame'].includes(el.localName) ? el : null
  }

  const byKey = (el, key, o) => {
    if (key === 'Enter' && isField(el) && el.localName !== 'textarea' && !el.isContentEditable && el.form) return byForm(el.form, null, o)
    if (isField(el) && !(el.localName === 'input' && key === 'Enter')) return { pays: false, label: '', why: [] }
    return judge(control(el), o)
  }

  // payIntent judges before anything is done. It says nothing where another
  // document has what is meant.
  tapin.payIntent = o => {
    if (o.key) {
      // Other keys work nothing by themselves; what they do to a button is heard at the gate.
      const el = ['Enter', ' '].includes(o.key) && document.hasFocus() ? focused() : null
      return el ? { here: true, ...byKey(el, o.key, o) } : { here: false }
    }
    const el = tapin.kept(o.id)
    if (!el?.isConnected) return { here: false }
    if (['iframe', 'frame', 'object', 'embed'].includes(el.localName)) return { here: false, frame: true }
    const said = { here: true, ...judge(control(el), o) }
    if (o.arm && !said.pays) {
      tapin.payArm({ rules: o.arm })
      said.armed = true
    }
    return said
  }

  // The gate: while we act for the agent, what would pay is stopped at the
  // window unless it is what was permitted. It is the last moment at which the
  // page can still be another than the one that was judged.
  let gate = null

  const target = e => {
    const node = e.composedPath()[0] ?? e.target
    return node?.nodeType === Node.ELEMENT_NODE ? node : null
  }

  const verdict = e => {
    if (e.type === 'submit') return e.target?.localName === 'form' ? byForm(e.target, e.submitter, gate.rules) : null
    const el = target(e)
    if (!el || ['iframe', 'frame', 'object', 'embed'].includes(el.localName)) return null
    if (e.type === 'keydown') return e.key === 'Enter' || e.key === ' ' ? byKey(el, e.key, gate.rules) : null
    return judge(control(el), gate.rules)
  }

  const presses = ['pointerdown', 'mousedown', 'touchstart', 'keydown']

  const hear = e => {
    if (!gate) return
    if (gate.refused) return stop(e) // the rest of the same gesture
    if (gate.beside && (e.type === 'submit' || !e.isTrusted)) return // what the permitted one leads to
    // A permission is for one press: a second click of the same gesture pays twice.
    if (gate.done && e.isTrusted && presses.includes(e.type)) gate.spent = true
    if (gate.spent && e.type !== 'submit') return e.isTrusted ? stop(e) : undefined
    if (['keypress', 'keyup', 'mouseup', 'pointerup', 'touchend'].includes(e.type)) return
    let it
    try { it = verdict(e) } catch { it = null }
    if (!it?.pays) return
    // A press changes how a button looks, and may change its words for the
    // release; what was permitted at the press is permitted to its end.
    if (gate.permit !== null && (it.mark === gate.permit || gate.used)) {
      gate.used = true
      if (e.type === 'click' || e.type === 'submit') gate.done = true
      return
    }
    gate.refused = { ...it, changed: gate.permit !== null }
    stop(e)
  }

  const stop = e => {
    e.preventDefault()
    e.stopImmediatePropagation()
  }

  // From the document's start, so that no script of the page hears it first;
  // those for fingers only while the gate is closed, as they slow scrolling.
  const hands = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'keydown', 'keypress', 'keyup', 'submit']
  const fingers = ['touchstart', 'touchend']
  const listen = types => { for (const type of types) addEventListener(type, hear, { capture: true, passive: false }) }
  listen(hands)

  // payArm closes the gate for what we are about to do; nobody may forget it
  // closed for the person who drives next. Beside the document in which a payment
  // was permitted only hands are stopped, not what comes of it.
  tapin.payArm = ({ permit, rules, beside }) => {
    if (gate) clearTimeout(gate.over)
    listen([...hands, ...fingers]) // again, as document.open() forgets whoever listened
    gate = { permit: permit ?? null, rules: rules ?? {}, refused: null, used: false, done: false, spent: false, beside: Boolean(beside), over: setTimeout(tapin.payDisarm, 15000) }
  }

  // payDisarm opens it again and says what was stopped.
  tapin.payDisarm = () => {
    const was = gate
    if (was) clearTimeout(was.over)
    gate = null
    for (const type of fingers) removeEventListener(type, hear, { capture: true })
    return { refused: was?.refused ?? null, used: Boolean(was?.used) }
  }
})(globalThis.tapin ??= {})
