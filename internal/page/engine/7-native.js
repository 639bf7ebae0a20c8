// Native fields: where the fields of a document lie, so that a control of the
// viewer's own can stand over each, and what such a control's new value means
// here. Nothing of this runs while nobody watches. What is secret stays in the
// document: of such a value only its length is told.
(tapin => {
  if (tapin.nativeNext) return

  const TEXTS = new Set(['text', 'password', 'email', 'tel', 'number', 'url', 'search'])
  const PICKERS = new Set(['date', 'time', 'datetime-local', 'month', 'week', 'color'])
  const CANDIDATES = 'input:not([type=hidden]), textarea, select, [contenteditable]:not([contenteditable=false])'
  const HOLDERS = 'iframe, frame, object'
  const most = { fields: 150, options: 500, value: 20000, text: 200 }

  const isInput = el => el instanceof HTMLInputElement
  const isNative = el => isInput(el) || el instanceof HTMLTextAreaElement || el instanceof HTMLSelectElement
  const isBox = el => isInput(el) && TEXTS.has(el.type) && el.maxLength === 1
  const isCode = el => isInput(el) && /(^|\s)one-time-code(\s|$)/.test(el.autocomplete ?? '')
  const cut = (text, length = most.text) => (text ?? '').slice(0, length)

  const kindOf = el => {
    if (el instanceof HTMLTextAreaElement) return 'textarea'
    if (el instanceof HTMLSelectElement) return 'select'
    if (isInput(el)) {
      if (TEXTS.has(el.type)) return el.type !== 'password' && (isCode(el) || isBox(el)) ? 'otp' : el.type
      return PICKERS.has(el.type) || el.type === 'file' ? el.type : ''
    }
    return el.isContentEditable && !el.parentElement?.isContentEditable ? 'editable' : ''
  }

  const active = () => {
    let el = document.activeElement
    for (let root; el && (root = tapin.shadow(el))?.activeElement;) el = root.activeElement
    while (el && !isNative(el) && el.isContentEditable && el.parentElement?.isContentEditable) el = el.parentElement
    return el
  }

  // reached tells whether a person could touch it somewhere. A small thing that
  // lies on it, such as a label that floats, does not cover it.
  const reached = (el, r) => {
    const left = Math.max(r.left, 0), top = Math.max(r.top, 0), right = Math.min(r.right, innerWidth), bottom = Math.min(r.bottom, innerHeight)
    if (right - left < 2 || bottom - top < 2) return false
    for (const [fx, fy] of [[.5, .5], [.15, .5], [.85, .5], [.5, .2], [.5, .8]]) {
      const hit = tapin.deepest(left + (right - left) * fx, top + (bottom - top) * fy)
      if (!hit) continue
      if (tapin.within(hit, el) || hit.closest?.('label')?.control === el) return true
      const h = hit.getBoundingClientRect()
      if (h.left >= r.left - 16 && h.right <= r.right + 16 && h.top >= r.top - 16 && h.bottom <= r.bottom + 16) return true
    }
    return false
  }

  // A rich text as one string, and where each of its characters stands.
  const linear = host => {
    let text = '', dirty = false, closed = false, end = [host, 0]
    const at = []
    const put = (c, place) => { at.push(place); text += c }
    const content = place => {
      if (closed) put('\n', end)
      closed = false
      dirty = true
      end = place
    }
    const walk = node => {
      for (const child of node.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) {
          if (!child.data || /^\s*\n\s*$/.test(child.data) && !drawn(child)) continue
          content([child, 0])
          const kept = getComputedStyle(node).whiteSpaceCollapse.startsWith('preserve')
          for (let i = 0; i < child.data.length; i++) {
            const c = child.data[i]
            put(c === '\u00a0' || !kept && /[\n\t]/.test(c) ? ' ' : c, [child, i])
          }
          end = [child, child.data.length]
        } else if (child.nodeType === Node.ELEMENT_NODE) {
          if (child.localName === 'br') {
            if (!child.nextSibling || child.nextSibling.nodeType === Node.TEXT_NODE && !child.nextSibling.data && !child.nextSibling.nextSibling) continue
            const place = [child.parentNode, [...child.parentNode.childNodes].indexOf(child)]
            content(place)
            put('\n', place)
            end = [place[0], place[1] + 1]
            continue
          }
          const block = !/^(inline|contents|none)/.test(getComputedStyle(child).display)
          if (block) {
            if (dirty || closed) put('\n', end)
            dirty = closed = false
            end = [child, 0]
          }
          walk(child)
          if (block) closed = true
        }
      }
    }
    walk(host)
    return { text, place: i => at[i] ?? end }
  }

  const drawn = node => {
    const range = document.createRange()
    range.selectNodeContents(node)
    return range.getClientRects().length > 0
  }

  const valueOf = el => (isNative(el) ? el.value : linear(el).text)

  // selectionOf is where the caret is, null where that cannot be known.
  const selectionOf = el => {
    if (isNative(el)) {
      try { return el.selectionStart === null || el.selectionStart === undefined ? null : [el.selectionStart, el.selectionEnd] } catch { return null }
    }
    const s = getSelection()
    if (!s.rangeCount || !el.contains(s.anchorNode)) return null
    const range = s.getRangeAt(0), flat = linear(el), out = []
    for (const [node, offset] of [[range.startContainer, range.startOffset], [range.endContainer, range.endOffset]]) {
      let i = 0
      for (; i < flat.text.length; i++) if (range.comparePoint && before(node, offset, ...flat.place(i))) break
      out.push(i)
    }
    return out
  }

  // before tells whether a place comes before, or is, another one.
  const before = (node, offset, other, at) => {
    const a = document.createRange(), b = document.createRange()
    a.setStart(node, offset)
    b.setStart(other, at)
    return a.compareBoundaryPoints(Range.START_TO_START, b) <= 0
  }

  // said is a value as it may be told.
  const said = el => {
    if (el.type === 'file') return { value: [...el.files].map(f => f.name).join(', ') }
    const value = valueOf(el)
    return tapin.secret(el) ? { masked: true, length: value.length } : value.length > most.value ? { length: value.length } : { value }
  }

  // What belongs to a field for the eye: its labels, and the part of the page that it
  // is filled in with, down to the button that sends it.
  const BUTTONS = 'button, [role=button], input[type=submit], input[type=button], input[type=image]'
  const around = (boxes) => {
    const left = Math.min(...boxes.map(b => b.left)), top = Math.min(...boxes.map(b => b.top))
    return { x: left, y: top, w: Math.max(...boxes.map(b => b.right)) - left, h: Math.max(...boxes.map(b => b.bottom)) - top }
  }
  const labelsOf = el => [...el.labels ?? [], ...(el.getAttribute('aria-labelledby') ?? '').split(/\s+/).filter(Boolean).map(id => el.getRootNode().getElementById?.(id)).filter(Boolean)]
  const labelled = (el, r) => around([r, ...labelsOf(el).filter(tapin.visible).map(l => l.getBoundingClientRect())
    .filter(l => l.width && l.bottom > r.top - 120 && l.top < r.bottom + 120 && l.right > r.left - 400 && l.left < r.right + 400)])
  const holderOf = el => {
    if (el.form) return el.form
    let holder = el.closest('dialog, [role=dialog], [role=form], fieldset')
    for (let at = el.parentElement, up = 0; !holder && at && up < 8; at = at.parentElement, up++) if (at.querySelector(BUTTONS)) holder = at
    return holder
  }
  const parts = new Map() // of one scan
  const partOf = el => {
    const holder = holderOf(el)
    if (!holder || holder === document.body) return null
    if (!parts.has(holder)) {
      const boxes = [...holder.querySelectorAll(`${CANDIDATES}, ${BUTTONS}, label, legend, h1, h2, h3`)].slice(0, most.fields).filter(tapin.visible)
        .map(x => x.getBoundingClientRect()).filter(b => b.width > 1 && b.height > 1 && b.right > 0 && b.left < innerWidth)
      parts.set(holder, boxes.length ? { id: String(tapin.keep(holder)), ...around(boxes) } : null)
    }
    return parts.get(holder)
  }

  const describe = (el, kind, r) => {
    const cs = getComputedStyle(el), px = v => Math.round(parseFloat(v) || 0), attribute = name => cut(el.getAttribute(name))
    const out = {
      id: String(tapin.keep(el)), kind, x: r.left, y: r.top, w: r.width, h: r.height, ...said(el),
      label: cut([...el.labels ?? []].map(l => l.textContent).join(' ').replace(/\s+/g, ' ').trim() || el.getAttribute('aria-label')),
      font: { size: px(cs.fontSize), family: cut(cs.fontFamily), weight: cs.fontWeight, color: cs.color, align: cs.textAlign, pad: [px(cs.paddingTop), px(cs.paddingRight), px(cs.paddingBottom), px(cs.paddingLeft)] },
    }
    for (const name of ['placeholder', 'inputmode', 'autocomplete', 'enterkeyhint', 'pattern', 'accept', 'step', 'min', 'max']) if (el.hasAttribute(name)) out[name] = attribute(name)
    out.box = labelled(el, r)
    const part = partOf(el)
    if (part) out.part = part
    if (el.maxLength > 0) out.maxlength = el.maxLength
    if (el.multiple) out.multiple = true
    if (el.matches(':disabled')) out.disabled = true
    if (el.readOnly) out.readonly = true
    if (kind === 'select') {
      out.options = [...el.options].slice(0, most.options).map(o => ({
        v: cut(o.value, 500), label: cut(o.label || o.text), group: o.parentElement instanceof HTMLOptGroupElement ? cut(o.parentElement.label) : undefined,
        disabled: o.disabled || o.parentElement?.disabled || undefined, selected: o.selected || undefined,
      }))
    }
    return out
  }

  // suspects may hide fields behind a closed shadow root.
  const suspect = el => el.localName.includes('-') && !tapin.shadow(el) && !el.childElementCount && el.getBoundingClientRect().width > 20

  const scan = () => {
    const fields = [], holes = []
    const focus = active(), here = document.hasFocus()
    let focused = '', opaque = 0
    parts.clear()
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll(CANDIDATES)) {
        const kind = kindOf(el), mine = here && el === focus
        if (!kind || fields.length >= most.fields) continue
        const r = el.getBoundingClientRect()
        const away = r.bottom <= 0 || r.top >= innerHeight || r.right <= 0 || r.left >= innerWidth
        if (!mine && (away || !tapin.visible(el) || !reached(el, r))) continue
        const field = describe(el, kind, r)
        if (mine) {
          focused = field.id
          const s = selectionOf(el)
          if (s) field.selection = s
        }
        fields.push(field)
      }
      for (const el of root.querySelectorAll(HOLDERS)) {
        const frame = tapin.heldBy(el), r = el.getBoundingClientRect()
        if (frame && reached(el, r)) holes.push({ frame, ...tapin.hole(el) })
      }
      for (const el of root.querySelectorAll(':defined')) if (suspect(el)) opaque++
    }
    const top = window === window.top && window.visualViewport
    return {
      fields, holes, opaque, focus: focused, ask: asked, here: here && !focus?.matches?.(HOLDERS), title: cut(document.title, 300),
      dx: top ? visualViewport.offsetLeft : 0, dy: top ? visualViewport.offsetTop : 0, w: innerWidth, h: innerHeight,
    }
  }

  // doc tells this document from any other, whose reports are counted from one as well.
  const doc = Math.random().toString(36)
  let on = false, n = 0, last = '', report = null, waiting = null, idle = 0, leaving = 0, planned = false, changed = 0, notBefore = 0
  let asked = null

  const look = () => {
    planned = false
    clearTimeout(changed)
    changed = 0
    if (!on) return
    const began = performance.now()
    report = scan()
    const now = JSON.stringify(report)
    if (now !== last) {
      last = now
      n++
      tell()
    }
    // A page with very many fields is not to spend its time on being looked at.
    notBefore = performance.now() + Math.max(30, 10 * (performance.now() - began))
  }

  const tell = () => {
    if (!waiting) return
    const told = waiting
    waiting = null
    clearTimeout(idle)
    stayFor()
    told({ n, doc, ...report })
  }

  // stayFor ends the watch when nobody asks again: whoever did may be gone.
  const stayFor = () => {
    clearTimeout(leaving)
    leaving = setTimeout(tapin.nativeStop, 10000)
  }

  const plan = () => {
    if (!on || planned) return
    planned = true
    const wait = Math.max(0, notBefore - performance.now())
    setTimeout(() => {
      const late = setTimeout(look, 100) // a frame out of sight is never painted
      // Once it is drawn: no picture waits for the page to be looked at.
      requestAnimationFrame(() => setTimeout(() => { clearTimeout(late); planned && look() }))
    }, wait)
  }

  // planLater is for a change that may not be seen. Of one that is, the picture tells:
  // nothing of ours is to be done while it is made.
  const planLater = () => { if (on && !changed) changed = setTimeout(plan, 50) }

  // What the browser would open in a window of its own, which nobody could see.
  const popup = el => el instanceof HTMLSelectElement ? !el.multiple && el.size <= 1 : isInput(el) && PICKERS.has(el.type)
  const aimed = e => {
    const el = e.composedPath()[0]
    const at = el instanceof Element && tapin.shadow(el) && e.clientX !== undefined ? tapin.deepest(e.clientX, e.clientY) : el
    return at instanceof Element && popup(at) && !at.matches(':disabled') ? at : null
  }
  const ask = (e, el) => {
    e.preventDefault()
    if (active() !== el) el.focus()
    asked = { id: String(tapin.keep(el)), n: (asked?.n ?? 0) + 1 }
    plan()
  }
  const onDown = e => {
    const el = e.button === 0 && aimed(e)
    if (el) ask(e, el)
  }
  const onClick = e => {
    const el = aimed(e)
    if (!el || el instanceof HTMLSelectElement) return
    // A click that a press came before has been told of with it.
    if (e.detail) e.preventDefault()
    else ask(e, el)
  }
  const onKey = e => {
    const el = aimed(e)
    if (el && (e.key === ' ' || e.key === 'Enter' && el instanceof HTMLSelectElement || e.key === 'F4' || e.altKey && e.key.startsWith('Arrow'))) ask(e, el)
  }

  const heard = ['scroll', 'input', 'change', 'focusin', 'focusout', 'resize', 'load', 'transitionend', 'animationend', 'toggle']
  const observer = new MutationObserver(planLater)

  const begin = () => {
    on = true
    clearTimeout(leaving)
    for (const type of heard) addEventListener(type, plan, { capture: true, passive: true })
    document.addEventListener('selectionchange', plan)
    for (const type of ['scroll', 'resize']) window.visualViewport?.addEventListener(type, plan)
    addEventListener('mousedown', onDown, true)
    addEventListener('click', onClick, true)
    addEventListener('keydown', onKey, true)
    for (const root of tapin.roots()) observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true })
  }

  tapin.nativeStop = () => {
    on = false
    last = ''
    for (const timer of [idle, leaving, changed]) clearTimeout(timer)
    changed = 0
    observer.disconnect()
    for (const type of heard) removeEventListener(type, plan, { capture: true })
    document.removeEventListener('selectionchange', plan)
    for (const type of ['scroll', 'resize']) window.visualViewport?.removeEventListener(type, plan)
    removeEventListener('mousedown', onDown, true)
    removeEventListener('click', onClick, true)
    removeEventListener('keydown', onKey, true)
    waiting?.({ n, idle: true })
    waiting = null
  }

  // nativeNext is what there is as soon as it is other than at `since` in the document
  // `of`; after `wait` it says that nothing changed. Only the last one who asked is told.
  tapin.nativeNext = ({ since, of, wait }) => {
    begin()
    waiting?.({ n, idle: true })
    waiting = null
    look()
    if (n !== since || of !== doc) {
      stayFor()
      return { n, doc, ...report }
    }
    return new Promise(told => {
      waiting = told
      clearTimeout(idle)
      idle = setTimeout(() => {
        waiting = null
        stayFor()
        told({ n, idle: true })
      }, wait)
    })
  }

  // nativePoke says that something was painted.
  tapin.nativePoke = () => plan()

  const hasFocus = el => active() === el && document.hasFocus()

  // nativePoint is where to touch a field, in this document's viewport; without
  // a point it has been given the focus.
  tapin.nativePoint = ({ id }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    if (hasFocus(el)) return {}
    const r = el.getBoundingClientRect()
    const x = (Math.max(r.left, 0) + Math.min(r.right, innerWidth)) / 2, y = (Math.max(r.top, 0) + Math.min(r.bottom, innerHeight)) / 2
    const hit = !popup(el) && el.type !== 'file' && tapin.deepest(x, y)
    if (hit && tapin.within(hit, el)) return { point: { x, y } }
    el.focus()
    return {}
  }

  tapin.nativeBlur = ({ id }) => {
    const el = tapin.kept(id)
    if (el && active() === el) el.blur()
  }

  const high = c => c >= '\ud800' && c <= '\udbff'
  const low = c => c >= '\udc00' && c <= '\udfff'

  // edges are where characters begin, as people count them: an emoji with its
  // skin tone is one, and no caret stands inside of it.
  let characters // made when first needed, as that takes a while
  const edges = text => {
    if (!/[^\x00-\x7f]/.test(text)) return { has: () => true }
    return new Set([...(characters ??= new Intl.Segmenter()).segment(text)].map(s => s.index)).add(text.length)
  }

  // change is what a person did to make b of a, with the caret behind it if that
  // is known.
  const change = (a, b, caret) => {
    const shorter = Math.min(a.length, b.length)
    const most = caret >= 0 && caret <= b.length ? Math.min(shorter, b.length - caret) : shorter
    let q = 0, p = 0
    while (q < most && a[a.length - 1 - q] === b[b.length - 1 - q]) q++
    while (p < shorter - q && a[p] === b[p]) p++
    const inA = edges(a), inB = edges(b)
    while (p && !(inA.has(p) && inB.has(p))) p--
    while (q && !(inA.has(a.length - q) && inB.has(b.length - q))) q--
    return { from: p, to: a.length - q, insert: b.slice(p, b.length - q) }
  }

  // carried is a place in one text, found again in what the page made of it: by
  // the letters and digits before it, as masks only add and take marks.
  const carried = (place, from, into) => {
    const letters = /[\p{L}\p{N}]/u
    let count = 0
    for (const c of from.slice(0, place)) if (letters.test(c)) count++
    let i = 0
    for (; i < into.length && count > 0; i++) if (letters.test(into[i])) count--
    return i
  }

  // rebased is the same change in what stands in the field now. What was typed into
  // a stand-in that knew of nothing goes after what is there.
  const rebased = (now, base, value, caret) => {
    if (base === null || base === undefined) return { from: 0, to: now.length, insert: value }
    const did = change(base, value, caret)
    if (now === base) return did
    if (did.to === base.length) {
      const gone = did.to - did.from
      return { from: did.from === 0 && gone ? 0 : Math.max(0, now.length - gone), to: now.length, insert: did.insert }
    }
    return { from: carried(did.from, base, now), to: carried(did.to, base, now), insert: did.insert }
  }

  // place selects a part of what is in the field. Fields for e-mail addresses
  // and numbers know no positions; there the caret is walked to it.
  const place = (el, from, to) => {
    if (isNative(el)) {
      try {
        el.setSelectionRange(from, to)
      } catch {
        const s = getSelection(), length = el.value.length
        const [edge, onward, back] = to >= length ? ['forward', 'backward', length - from] : ['backward', 'forward', to]
        s.modify('move', edge, 'documentboundary')
        if (onward === 'forward') {
          for (let i = 0; i < from; i++) s.modify('move', onward, 'character')
          for (let i = from; i < to; i++) s.modify('extend', onward, 'character')
        } else {
          for (let i = 0; i < back; i++) s.modify(to > from ? 'extend' : 'move', onward, 'character')
        }
      }
      return
    }
    const flat = linear(el)
    getSelection().setBaseAndExtent(...flat.place(from), ...flat.place(to))
  }

  const single = (text, i) => !low(text[i]) && !high(text[i]) && !/^[\p{M}\u200d\ufe0f]/u.test(text.slice(i))

  // nativeEdit prepares the field for what a person did to its stand-in, and says
  // what is to be typed: the selection is set, or the caret where one Backspace
  // takes away the right character.
  tapin.nativeEdit = ({ id, base, value, caret }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    if (el.matches(':disabled') || el.readOnly) return { locked: el.readOnly ? 'read-only' : 'disabled' }
    if (!hasFocus(el)) el.focus()
    if (!hasFocus(el)) return { focused: false }
    const now = valueOf(el)
    if (base === '' && now && tapin.secret(el) && !isBox(el)) base = null // nobody adds to what cannot be read
    const did = isInput(el) && el.type === 'number' && el.validity.badInput
      ? { from: 0, to: 0, insert: value, all: true } : rebased(now, base, value, caret)
    // A box that was empty when this was typed, and got the character before it since.
    const since = isBox(el) && base === '' && now !== ''
    const erase = !since && (did.all || did.to > did.from)
    const full = isBox(el) && now.length > 0 && !erase && did.insert !== ''
    if (did.all) el.select()
    else if (!full) place(el, erase && !did.insert && did.to - did.from === 1 && single(now, did.from) ? did.to : did.from, did.to)
    return { ...tapin.hold({ id, clear: false, free: true }), erase, full, insert: did.insert }
  }

  const painted = () => new Promise(done => {
    const late = setTimeout(done, 60)
    requestAnimationFrame(() => { clearTimeout(late); done() })
  })

  // nativeSettled is what the page made of it. Where that is not what was wanted,
  // it may only be so until the page has drawn; what changes later is reported
  // like any other change. The answer and the reports go different ways: `read`
  // says which of those are older, and one that is younger always follows.
  tapin.nativeSettled = async ({ id, value }) => {
    const came = await tapin.release({ expect: false })
    const is = tapin.kept(id)
    if (!is?.isConnected || valueOf(is) !== value) await painted()
    const el = tapin.kept(id)
    if (!el?.isConnected) return { ...came, gone: true }
    last = ''
    plan()
    return { ...came, gone: false, read: n, ...said(el), same: valueOf(el) === value, selection: selectionOf(el) }
  }

  // selected is the text that a person would copy; nothing of a secret.
  tapin.selected = () => {
    const el = active()
    if (!document.hasFocus() || el?.matches?.(HOLDERS)) return { here: false }
    if (el && isNative(el)) {
      const s = !tapin.secret(el) && selectionOf(el)
      return { here: true, text: s ? el.value.slice(...s) : '' }
    }
    return { here: true, text: String(getSelection()) }
  }
})(globalThis.tapin ??= {})
