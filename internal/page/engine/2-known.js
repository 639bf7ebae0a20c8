// What is known of elements beyond what the page says: the refs they were given,
// the frames they hold, and whether what is typed into them is a secret.
(tapin => {
  if (tapin.refOf) return

  // Refs: the names by which a snapshot's reader calls elements. An element
  // keeps its number as long as its document lives; no number is given twice.
  // The first one comes from outside, where the numbers of earlier documents
  // are known. Under another frame number the old refs mean nothing.
  let numbers = new WeakMap(), elements = new Map(), known = 0, last = 0, swept = 4096
  let unheard = false // the numbers were told by the document itself, and nobody has said that they count

  // begin prepares for numbers from outside: those of this frame. Where it was not
  // heard what they stood for, another document may have given the same.
  tapin.beginRefs = (frame, from, heard) => {
    if (known !== frame || unheard && !heard) [numbers, elements, known, last] = [new WeakMap(), new Map(), frame, 0]
    unheard = false
    last = Math.max(last, from - 1) // other documents were here while this one was in the cache
    if (elements.size > 2 * swept) {
      for (const [n, el] of elements) if (!el.deref()?.isConnected) elements.delete(n)
      swept = Math.max(4096, elements.size)
    }
  }

  tapin.refOf = el => {
    let n = numbers.get(el)
    if (!n) numbers.set(el, n = ++last)
    if (!elements.has(n)) elements.set(n, new WeakRef(el)) // swept while it was out of the document
    return (known > 1 ? 'f' + known : '') + 'e' + n
  }

  tapin.lastRef = () => last

  tapin.unheardRefs = () => { unheard = true }

  // refKept is the kept id of a ref's element, 0 when it is gone.
  tapin.refKept = ({ frame, n }) => {
    const el = frame === known ? elements.get(n)?.deref() : null
    return el?.isConnected && el.ownerDocument === document ? tapin.keep(el) : 0
  }

  // Frames: which element holds which frame is told from outside.
  const held = new WeakMap(), holders = new Map()

  tapin.heldBy = el => held.get(el) ?? 0

  tapin.holds = (el, frame) => {
    held.set(el, frame)
    holders.set(frame, new WeakRef(el))
  }

  // hole is where a frame's document is drawn in this one, and how much larger.
  tapin.hole = el => {
    const r = el.getBoundingClientRect(), scale = el.offsetWidth ? r.width / el.offsetWidth : 1
    const cs = getComputedStyle(el), px = side => (parseFloat(cs['padding' + side]) || 0) * scale
    return {
      x: r.left + el.clientLeft * scale + px('Left'), y: r.top + el.clientTop * scale + px('Top'),
      width: el.clientWidth * scale - px('Left') - px('Right'), height: el.clientHeight * scale - px('Top') - px('Bottom'), scale,
    }
  }

  // holeOf is where a frame is drawn in this document, null when it is not.
  tapin.holeOf = frame => {
    const el = holders.get(frame)?.deref()
    if (!el?.isConnected) holders.delete(frame)
    return el?.isConnected ? tapin.hole(el) : null
  }

  // Secrets. When in doubt a field is one.
  const once = new WeakSet() // was a password field before the page showed it in clear
  const codeWords = /otp|one.?time|passcode|code|\bpin\b|_pin|pin_|^pin|token|\b[2m]fa\b|\btan\b|verif|challenge/i
  const notCodes = /zip|post|country|area|promo|coupon|discount|voucher|gift|referr|currency/i
  const secretWords = /passw(or)?d|passwd|\bpwd\b|passphrase|card.?(number|num|no)\b|cc.?num|\bcv[cv]2?\b|\bcsc\b|security.?code/i
  const secretCompletions = /(^|\s)(cc-\S+|one-time-code|(current|new)-password)(\s|$)/i

  // What the owner entrusted: the fields it was typed into, and what it was, as a
  // page may draw its field anew or carry the value to another one. The clipboard
  // would carry it to another site.
  const hidden = new Set()

  tapin.hide = (el, value) => {
    once.add(el)
    hidden.add(value)
    for (const way of ['copy', 'cut', 'dragstart']) addEventListener(way, keepHere, true)
  }

  const keepHere = e => {
    if (hidden.has(String(getSelection())) || e.composedPath().some(el => el instanceof Element && tapin.secret(el))) {
      e.preventDefault()
      e.stopImmediatePropagation()
    }
  }

  const showsHidden = el => hidden.size > 0 && [...hidden].some(value => (el.value ?? el.textContent ?? '').includes(value))

  tapin.secret = el => {
    if (once.has(el) || showsHidden(el)) return true
    if (el.localName !== 'input' && el.localName !== 'textarea' && el.localName !== 'select') return el.isContentEditable ? secretWords.test(calls(el)) : false
    if (el.type === 'password') once.add(el)
    if (once.has(el) || secretCompletions.test(el.getAttribute('autocomplete') ?? '')) return true
    if (el.localName === 'select' || ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'range', 'color'].includes(el.type)) return false
    const said = calls(el), short = el.maxLength > 0 && el.maxLength <= 8
    if (secretWords.test(said)) return true
    const digits = ['number', 'tel'].includes(el.type) || ['numeric', 'decimal', 'tel'].includes(el.inputMode) || /\\d|0-9/.test(el.pattern ?? '')
    if (el.maxLength === 1) return true // one box of a code
    return codeWords.test(said) && !notCodes.test(said) && (digits || short)
  }

  const calls = el => [el.name, el.id, el.getAttribute('aria-label'), el.getAttribute('placeholder'), el.getAttribute('data-testid'),
    ...tapin.labelsOf(el).map(l => l.textContent)].join(' ').slice(0, 500)

  // labelsOf is el.labels, which looks through the whole document each time, from
  // what one look has found.
  let labels = null
  tapin.labelsOf = el => labels ? labels.get(el) ?? [] : [...el.labels ?? []]

  tapin.learnLabels = (root, anew) => {
    if (anew) labels = new WeakMap()
    for (const label of root.querySelectorAll('label')) {
      const control = label.control
      if (control) labels.set(control, [...labels.get(control) ?? [], label])
    }
  }

  tapin.forgetLabels = () => { labels = null }
})(globalThis.tapin ??= {})
