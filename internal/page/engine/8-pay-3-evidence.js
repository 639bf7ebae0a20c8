// Money on the page, as evidence: how much a document looks as if it was about to
// take some, and what a control is, apart from its words.
(tapin => {
  if (tapin.payEvidence) return

  const words = tapin.payWords
  const { fold, clip, up, inline, unread, tidy, lines, hasSum, labelOf, calls, drawn } = tapin.payRead
  const once = fn => {
    let known
    return () => (known ??= { value: fn() }).value
  }

  const forCard = el => {
    if (el.localName !== 'input') return false
    const says = [el.autocomplete, el.name, el.id, el.placeholder, el.getAttribute('aria-label'), ...[...el.labels ?? []].map(l => l.textContent)].map(s => (s ?? '').trim())
    return (/^cc-(?:number|exp|csc)/.test(says[0]) || says.some(s => s && words.cardField.test(s))) && tapin.visible(el)
  }

  // sendsCard tells a button that sends a form with a card in it: beside a total
  // that pays, in whatever words and language.
  const sendsCard = el => el.type === 'submit' && Boolean(el.form) && [...el.form.elements].some(forCard)

  // evidence looks at the whole page, and one press asks for it several times: as
  // long as the page says the same, so does this.
  let last = { text: null }
  const evidence = () => {
    const text = tapin.roots().map(root => root.querySelectorAll('input').length + ((root.body ?? root).textContent ?? '')).join('')
    if (last.text !== text || performance.now() - last.at > 1000) last = { text, at: performance.now(), found: gathered(text) }
    return last.found
  }

  // gathered finds each of it out when it is asked for: most is read off all that a
  // person sees, and seldom does a verdict come to that.
  const gathered = text => {
    const card = once(() => tapin.roots().some(root => [...root.querySelectorAll('input')].some(forCard)))
    const bare = once(() => !card() && !/\d[^\d]{0,8}(?:\p{Sc}|\p{L}{2})|(?:\p{Sc}|\p{L})[^\p{L}\d]{0,8}\d|[円元원]/u.test(text)) // no number with anything beside it
    const all = once(lines)
    const sums = once(() => bare() || sumless() ? [] : all().map((l, i) => ({ ...l, i })).filter(l => hasSum(l.text) && !framing(l.el)))
    // A footer that names what cards a shop takes is no evidence.
    const said = once(() => fold(document.title + ' ' + all().filter(l => !framing(l.el)).map(l => l.text).join(' \n ')))
    const says = list => once(() => !bare() && list.some(w => w.test(said())))
    return {
      card,
      sum: once(() => sums().some(l => named(l.text, labelOf(all(), l.i)))),
      sums: () => sums().length > 0,
      few: () => !bare() && sums().length < 4,
      about: says(words.about), // payment
      means: says(words.means), // what it is paid with
      held: says(words.held), // that it will be taken from there
      later: says(words.later), // that it will not be now
      back: once(() => !bare() && headed(words.back)), // what comes back
    }
  }

  // sumless is a quick and certain no: whatever has a digit is alone in a box, which
  // makes it a line of its own, and is no sum. How the rest is drawn does not matter.
  const sumless = () => {
    if (tapin.roots().length > 1) return false
    const walk = document.createTreeWalker(tapin.plain.body(document) ?? document, NodeFilter.SHOW_TEXT)
    for (let node = walk.nextNode(), left = 50; node; node = walk.nextNode()) {
      if (!/\d/.test(node.data)) continue
      const box = node.parentNode
      if (unread.has(tapin.plain.tag(box))) continue
      if (!left-- || node.previousSibling || node.nextSibling || hasSum(tidy(node.data)) || inline(box)) return false
    }
    return true
  }

  // named tells a sum that is called a total.
  const named = (text, label) => {
    const line = fold(text.replace(/[^\p{L}]/gu, '').length > 4 ? text : `${label} ${text}`)
    return calls(line) && !words.part.test(line)
  }

  tapin.payEvidence = () => ({ card: evidence().card(), sum: evidence().sum() })

  const headed = list => [document.title, ...[...document.querySelectorAll('h1')].filter(tapin.visible).map(h => h.innerText)].some(s => list.some(w => w.test(fold(s))))

  // aside tells a page whose heading says that it is about something else.
  const aside = () => headed(words.aside) || headed(words.cart)

  // elsewhere is the same of pages that show no total of anything to come.
  const elsewhere = () => headed(words.aside) || headed(words.back)

  // framing tells what stands around every page of a site.
  const framing = el => Boolean(up(el, n => ['nav', 'footer'].includes(n.localName) || ['navigation', 'menubar', 'contentinfo'].includes(n.getAttribute('role'))))

  const heads = el => Boolean(up(el, n => n.localName === 'header' && n.parentElement === document.body || n.getAttribute('role') === 'banner'))

  const control = el => up(el, n => tapin.clickable(n) && n.localName !== 'label') ?? up(el, n => n.localName === 'label')?.control ?? up(el, n => getComputedStyle(n).cursor === 'pointer' && (n.innerText ?? '').length < 80) ?? el

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

  // subscribes tells a button that sends an address for e-mail and nothing else.
  const subscribes = el => {
    const fields = [...el.form?.elements ?? []].filter(f => isField(f) && !['hidden', 'checkbox'].includes(f.type))
    return fields.length === 1 && (fields[0].type === 'email' || /mail/i.test(fields[0].name + fields[0].id + fields[0].placeholder))
  }

  // signs tells a button that sends a code: beside a sum that is a signature.
  const signs = el => [...el.form?.elements ?? []].some(f => f.localName === 'input' && (f.autocomplete === 'one-time-code' || f.type === 'password' || /(?:^|[^a-z])(?:m?tan|otp|pin|sms|2fa|token)(?:[^a-z]|$)/i.test([f.name, f.id, f.placeholder, ...[...f.labels ?? []].map(l => l.innerText)].join(' '))))

  // charges tells a control that stands in a dialog, or alone in a box, that
  // itself says what is taken from where.
  const charges = el => {
    const asks = up(el, n => n.localName === 'dialog' || ['dialog', 'alertdialog'].includes(n.getAttribute('role')) || n.getAttribute('aria-modal') === 'true')
    if (asks) return charged(asks)
    for (let box = tapin.above(el), n = 0; box && n < 3; box = tapin.above(box), n++) {
      if (box.nodeType !== Node.ELEMENT_NODE || box.querySelectorAll('button,[role=button],input,a').length > 1) return false
      if (charged(box)) return true
    }
    return false
  }

  const charged = box => {
    const text = drawn(box), low = fold(text)
    return hasSum(text) && /[1-9]/.test((low.match(words.priced) ?? [''])[0]) && words.held.some(w => w.test(low))
  }

  // controls are what a person could press.
  const controls = () => tapin.roots().flatMap(root => [...root.querySelectorAll('button,[role=button],input[type=submit],input[type=image],input[type=button],a')]).slice(0, 300).filter(tapin.visible)

  const drawnAsButton = el => {
    const style = getComputedStyle(el)
    return el.getAttribute('role') === 'button' || /(?:^|[\s_-])(?:btn|button|cta)/i.test(el.className) || style.display !== 'inline' && (style.backgroundColor !== 'rgba(0, 0, 0, 0)' || style.backgroundImage !== 'none' || parseFloat(style.borderTopWidth) > 0)
  }

  tapin.payLook = { evidence, aside, elsewhere, sendsCard, forCard, framing, heads, control, controls, saying, isField, leads, guides, subscribes, signs, charges, drawnAsButton }
})(globalThis.tapin ??= {})
