// The gate in front of what pays.
(tapin => {
  if (tapin.payArm) return

  const { control } = tapin.payLook
  const { judge, byForm, byKey } = tapin.payJudge

  // The gate: while we act for the agent, what would pay is stopped at the
  // window unless it is what was permitted. It is the last moment at which the
  // page can still be another than the one that was judged.
  let gate = null
  let late = null // what was stopped when nobody listened any more

  const target = e => {
    const node = e.composedPath()[0] ?? e.target
    return node?.nodeType === Node.ELEMENT_NODE ? node : null
  }

  const verdict = e => {
    if (e.type === 'submit') return e.target?.localName === 'form' ? byForm(e.target, e.submitter, gate.rules) : null
    const el = target(e)
    if (!el || ['iframe', 'frame', 'object', 'embed'].includes(el.localName)) return null
    if (e.type === 'keydown') return e.key === 'Enter' || e.key === ' ' ? byKey(el, e.key, gate.rules) : null
    return judgeOnce(control(el))
  }

  // A click is judged at each of its events. Where nothing in the document has
  // changed since the last of them, neither has the verdict; what changes in a
  // shadow root is not seen, so that a page with one is judged anew each time.
  const changes = new MutationObserver(() => { if (gate) gate.judged = null })
  const judgeOnce = el => {
    if (changes.takeRecords().length) gate.judged = null
    if (gate.judged?.el !== el) gate.judged = gate.plain ? { el, it: judge(el, gate.rules) } : null
    return gate.judged?.it ?? judge(el, gate.rules)
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
    try { it = verdict(e) } catch { it = { pays: true, label: '', why: ['it could not be judged'], mark: '' } }
    if (!it?.pays) return
    // A press changes how a button looks, and may change its words for the
    // release; what was permitted at the press is permitted to its end.
    if (gate.permit !== null && (it.mark === gate.permit || gate.used)) {
      gate.used = true
      if (e.type === 'click' || e.type === 'submit') gate.done = true
      return
    }
    gate.refused = { ...it, changed: gate.permit !== null }
    if (gate.told) late = gate.refused
    stop(e)
  }

  const stop = e => {
    e.preventDefault()
    e.stopImmediatePropagation()
  }

  // Fingers are listened to only while the gate is closed to one, as that slows
  // scrolling, and each change of it has the page's touchable parts worked out anew.
  const hands = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'keydown', 'keypress', 'keyup', 'submit']
  const fingers = ['touchstart', 'touchend']

  // payArm closes the gate for what we are about to do; nobody may forget it
  // closed for the person who drives next. Beside the document in which a payment
  // was permitted only hands are stopped, not what comes of it.
  tapin.payArm = ({ permit, rules, beside, judged }) => {
    if (gate) clearTimeout(gate.over)
    tapin.hears(hands, hear)
    if (rules?.fingers) for (const type of fingers) addEventListener(type, hear, { capture: true, passive: false })
    const plain = tapin.roots().length === 1
    gate = {
      permit: permit ?? null, rules: rules ?? {}, refused: null, used: false, done: false, spent: false, beside: Boolean(beside),
      plain, judged: plain && judged || null, over: setTimeout(tapin.payDisarm, 15000),
    }
    changes.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
  }

  const report = was => ({ refused: was?.refused ?? null, used: Boolean(was?.used) })

  // payDisarm opens it again and says what was stopped.
  tapin.payDisarm = () => {
    const was = gate
    if (was) clearTimeout(was.over)
    gate = null
    changes.disconnect()
    for (const type of fingers) removeEventListener(type, hear, { capture: true })
    return report(was)
  }

  const AFTERMATH = 50 // ms

  // payRelease says so at once and opens it in a moment: a page may do with a timer
  // what it shall not do in the click. What is stopped then, payLate tells.
  tapin.payRelease = () => {
    if (gate) {
      clearTimeout(gate.over)
      gate.over = setTimeout(tapin.payDisarm, AFTERMATH)
      gate.told = true
    }
    return report(gate)
  }

  tapin.payLate = () => {
    const it = late
    late = null
    return it
  }
})(globalThis.tapin ??= {})
