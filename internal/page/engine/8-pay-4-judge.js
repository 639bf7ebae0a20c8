// Money on the page, judged: whether working an element pays. Three ways lead
// there. What a control says may be enough ("pay now"); it may be a word that
// pays where the page is about to take money ("confirm"); and on a page that
// plainly is, whatever ends it pays, in words that nobody thought of, unless
// they are known to do something else.
(tapin => {
  if (tapin.payJudge) return

  const words = tapin.payWords
  const { fold, clip, lines, hasSum, labelOf, calls, drawn } = tapin.payRead
  const { evidence, aside, sendsCard, forCard, framing, heads, control, controls, saying, isField, leads, guides, subscribes, signs, charges, drawnAsButton } = tapin.payLook

  const patterns = list => (list ?? []).flatMap(p => { try { return [new RegExp(p, 'iu')] } catch { return [] } })

  // meant is what is said on a button, and the same without what it costs and when.
  const meant = said => {
    const short = said.filter(s => s.length <= 90).map(s => s.replace(/[→›»▸➔✓✔🔒]/gu, '').trim())
    const bare = short.map(s => s.replace(words.priced, ' ').replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
    return [...new Set([...short, ...bare, ...bare.map(s => s.replace(words.when, ''))].filter(s => s && !/^[^\p{L}]*$/u.test(s)))]
  }

  // ends tells a control that could be the last word on a page: no field, no menu,
  // no choice among several, nothing that opens or folds.
  const ends = (el, short) => {
    if (framing(el) || heads(el)) return false
    if (['summary', 'label', 'option', 'area'].includes(el.localName) || el.localName === 'a' && !drawnAsButton(el)) return false
    if (['tab', 'radio', 'switch', 'checkbox', 'menuitem', 'option', 'menuitemradio', 'menuitemcheckbox', 'link'].includes(el.getAttribute('role'))) return false
    if (['aria-haspopup', 'aria-expanded', 'aria-pressed', 'aria-checked', 'aria-selected', 'commandfor', 'popovertarget'].some(a => el.hasAttribute(a))) return false
    if (el.type === 'reset' || el.type === 'button' && el.form && submitter(el.form)) return false
    if (/[▾▼⌄˅∨]\s*$/u.test(drawn(el)) || oneOfMany(el)) return false
    return short.length > 0 && !choice(short[0]) && (/\p{L}/u.test(drawn(el)) || el.localName === 'input') // a mere sign steps, or folds
  }

  // choice tells a label that is no deed but one of several things to choose:
  // a sum, a number, a card.
  const choice = s => !/\p{L}{2}/u.test(s.replace(words.priced, '')) || words.masked.test(s) || /^\p{L}{2,3}$/u.test(s)

  // oneOfMany tells one of several that are made alike, each with its price: to be chosen.
  const oneOfMany = el => el.className && [...el.parentElement?.children ?? []].filter(n => n.localName === el.localName && n.className.split(' ')[0] === el.className.split(' ')[0] && hasSum(drawn(n))).length > 1 && hasSum(drawn(el))

  const judge = (el, o) => {
    const it = weigh(el, o)
    if (it.pays) it.mark = mark(it)
    return it
  }

  // weigh says whether working the element pays.
  const weigh = (el, o) => {
    const it = { pays: false, label: '', why: [], name: tapin.describe(el) }
    if (isField(el)) return it
    const said = saying(el)
    it.label = said[0] ?? ''
    const own = patterns(o?.patterns)
    if (said.some(s => own.some(p => p.test(s)))) return { ...it, pays: true, sure: true, why: ['a pattern of the owner'] }
    const short = meant(said)
    const kind = kindOf(el, short)
    if (!kind || guides(el)) return it
    const around = { ...evidence() }
    if (o?.card) around.card = () => true
    if (o?.sum || kind !== 'sure' && said.some(s => words.priced.test(s))) around.sum = () => true
    it.sure = kind === 'sure'
    it.pays = kind === 'last' ? concludes(el, around) : takes(el, kind, short, around)
    if (it.pays) it.why = because(kind, around)
    return it
  }

  const because = (kind, around) => [
    around.card() && 'fields for a card',
    around.sum() && 'a total',
    around.about() && 'words about payment',
    kind === 'last' && 'nothing else on the page that would pay',
  ].filter(Boolean)

  // kindOf tells what the words on a control are: sure to pay, maybe, those that
  // send a card, or of the last control on a page, whatever they are.
  const kindOf = (el, short) => {
    const says = list => short.some(s => list.some(w => w.test(s)))
    if (says(words.surely)) return 'sure'
    if (short.some(s => words.maybe.some(w => w.test(s)) && !words.never.test(s))) return 'maybe'
    const other = short.some(s => words.never.test(s))
    if (!other && !says(words.otherwise) && sendsCard(el)) return 'card'
    if (!ends(el, short)) return ''
    if (!says(words.leave) && charges(el)) return 'charge'
    return other || says(words.otherwise) || says([words.tame]) ? '' : 'last'
  }

  // takes tells whether a control whose words are known pays on such a page.
  const takes = (el, kind, short, around) => {
    const points = () => (around.card() ? 2 : 0) + (around.sum() ? 1 : 0) + (around.about() || around.means() ? 1 : 0) + (around.held() ? 1 : 0) + (signs(el) ? 1 : 0)
    if (kind === 'sure') return !leads(el) || around.sum() || around.card()
    if (kind === 'card') return around.sum()
    if (kind === 'charge') return true
    const onward = short.some(s => words.onward.test(s))
    if (onward && (!around.sum() || leads(el))) return false
    const buys = short.some(s => words.buys.test(s)), from = () => around.card() || around.held()
    if (off(around) || !from() && (subscribes(el) || !around.about() && !buys && aside())) return false
    if (!buys && leads(el) && !around.card()) return false // another page asks first
    if (onward) return points() >= 3
    const much = around.sum() || around.sums() && !leads(el) && (around.held() || around.means() || around.about() && around.few())
    return much && (buys || points() >= 2) || around.card() && points() >= 2
  }

  // concludes tells whether a control in whatever words is what the page comes to.
  const concludes = (el, around) => plainly(around) && (!leads(el) || around.sum() && around.held()) && !payer(el, around)

  // plainly tells a page that is about to take money: it says how much, and from where.
  const plainly = around => (around.sum() && (around.card() || around.means() || around.about()) || around.sums() && around.held()) && !off(around) && !aside()

  // off tells a page that says that it takes nothing, or not now.
  const off = around => around.back() || around.later() && !around.card() && !around.held()

  // payer tells whether another control of the document pays by its words.
  const payer = (el, around) => controls().some(other => {
    if (other === el || framing(other) || heads(other) || other.localName === 'a' && !drawnAsButton(other)) return false
    const short = meant(saying(other)), kind = kindOf(other, short)
    return Boolean(kind) && kind !== 'last' && takes(other, kind, short, around)
  })

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

  // submitter is what Enter presses: the first button that sends the form.
  const submitter = form => [...form.elements].find(e => (e.localName === 'button' && e.type === 'submit' || e.localName === 'input' && ['submit', 'image'].includes(e.type)) && !e.disabled) ?? null

  // byForm judges a form that is about to be sent.
  const byForm = (form, by, o) => {
    const via = by ?? submitter(form)
    if (via) return judge(via, o)
    const around = evidence()
    const it = { pays: false, label: '', why: ['a form that is sent'], name: tapin.describe(form) }
    it.pays = around.card() && (around.sum() || around.about()) && [...form.elements].some(forCard)
    if (it.pays) it.mark = mark(it)
    return it
  }

  const focused = () => {
    let el = document.hasFocus() ? document.activeElement : null
    while (el && tapin.shadow(el)?.activeElement) el = tapin.shadow(el).activeElement
    return el
  }

  const byKey = (el, key, o) => {
    if (key === 'Enter' && isField(el) && el.localName !== 'textarea' && !el.isContentEditable && el.form) return byForm(el.form, null, o)
    if (isField(el) && !(el.localName === 'input' && key === 'Enter')) return { pays: false, label: '', why: [] }
    return judge(control(el), o)
  }

  // payIntent judges before anything is done. It says nothing where another
  // document has what is meant. What the last deed led to, and was stopped, is told with it.
  tapin.payIntent = o => {
    if (o.key) {
      const el = focused()
      if (['iframe', 'frame', 'object', 'embed'].includes(el?.localName)) return { here: false, focus: 'deeper' }
      // Other keys work nothing by themselves; what they do to a button is heard at the gate.
      const works = el && el !== document.body && ['Enter', ' '].includes(o.key)
      return works ? { here: true, late: tapin.payLate(), ...byKey(el, o.key, o) } : { here: false, focus: document.hasFocus() ? 'here' : '' }
    }
    const el = tapin.kept(o.id)
    if (!el?.isConnected) return { here: false }
    if (['iframe', 'frame', 'object', 'embed'].includes(el.localName)) return { here: false, frame: true }
    const it = judge(control(el), o), said = { here: true, late: tapin.payLate(), ...it }
    if (o.arm && !said.pays && !said.late) {
      tapin.payArm({ rules: o.arm, judged: { el: control(el), it } })
      said.armed = true
    }
    return said
  }

  tapin.payJudge = { judge, weigh, byForm, byKey, mark }
})(globalThis.tapin ??= {})
