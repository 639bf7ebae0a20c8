// What the page says is to be paid, and how it answered.
(tapin => {
  if (tapin.paySums) return

  const { fold, clip, up, button, lines, hasSum, labelOf, echoes, boxOf } = tapin.payRead
  const { elsewhere, controls } = tapin.payLook
  const { weigh, mark } = tapin.payJudge

  // pressed tells whether a sum stands on the button that takes it.
  const pressed = el => {
    const by = up(el, button)
    return Boolean(by && weigh(by).pays)
  }

  // chosen tells a sum on the one of several that was chosen.
  const chosen = el => Boolean(up(el, n => n.matches('[aria-pressed=true],[aria-checked=true],[aria-selected=true]') || n.localName === 'label' && n.control?.checked && n.control.type === 'radio'))

  // beside are the sums, by their place, that stand alone with a button that
  // takes them: where nothing is called a total, that is what it takes.
  const beside = (at, sums, takers) => {
    if (!at.length || takers.length !== 1) return []
    for (let node = takers[0]; node; node = tapin.above(node)) {
      const inside = at.flatMap((el, i) => tapin.within(el, node) ? [i] : [])
      if (inside.length) return inside.every(i => sums[i].text === sums[inside[0]].text) ? inside : []
    }
    return []
  }

  // boldest are the sums, by their place, that are written larger than all others.
  const boldest = at => {
    const sizes = at.map(el => parseFloat(getComputedStyle(el).fontSize) + (getComputedStyle(el).fontWeight >= 600 ? .5 : 0)), most = Math.max(...sizes)
    return new Set(sizes).size > 1 || at.length === 1 ? sizes.flatMap((size, i) => size === most ? [i] : []) : []
  }

  // paySums are the sums that the document shows, with what stands beside them.
  tapin.paySums = ({ names }) => {
    const all = lines(), echo = echoes(), at = [], sums = []
    for (let i = 0; i < all.length && sums.length < 300; i++) {
      const { text, el } = all[i]
      if (!hasSum(text)) continue
      const own = text.replace(/[^\p{L}]/gu, '').length > 4
      const label = own ? '' : labelOf(all, i)
      sums.push({ text: clip(text, 200), label: clip(label, 100), echo: echo(label, text), button: pressed(el), chosen: chosen(el), box: boxOf(el) })
      at.push(el)
    }
    const takers = controls().filter(el => weigh(el).pays)
    for (const i of beside(at, sums, takers)) sums[i].beside = true
    for (const i of boldest(at)) sums[i].bold = true
    // Names are looked for where nobody typed them.
    const squash = s => fold(s).replace(/[^\p{L}\p{N}]+/gu, '')
    const whole = squash(all.map(l => l.text).join(' '))
    return {
      origin: self.origin, sums, payer: takers.length > 0, elsewhere: elsewhere(), language: document.documentElement.lang || '', host: location.hostname,
      names: (names ?? []).map(n => { const s = squash(n); return s.length > 1 && whole.includes(s) }),
    }
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
})(globalThis.tapin ??= {})
