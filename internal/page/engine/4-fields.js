// Fields: what kind a field is, how it gets the focus, who receives what is
// typed, and how pickers are set. No value ever leaves the document from here.
(tapin => {
  if (tapin.field) return

  const TYPED = new Set(['text', 'password', 'email', 'number', 'tel', 'search', 'url'])
  const PICKED = new Set(['date', 'time', 'datetime-local', 'month', 'week', 'range', 'color'])
  const FIELDS = 'input:not([type=hidden]), textarea, select, [contenteditable]:not([contenteditable=false])'

  const pause = ms => new Promise(done => setTimeout(done, ms))
  const tidy = text => text.replace(/\s+/g, ' ').trim()
  const isInput = el => el instanceof HTMLInputElement
  const isNative = el => isInput(el) || el instanceof HTMLTextAreaElement || el instanceof HTMLSelectElement

  // hostOf is the element that an editable region begins with. A document that
  // is editable as a whole has its focus in the body.
  const hostOf = el => {
    while (el !== document.body && el.parentElement?.isContentEditable) el = el.parentElement
    return el
  }

  // fieldOf is the field that an element stands for: itself, what it labels, or
  // the only one inside it.
  const fieldOf = el => {
    if (isNative(el)) return el
    if (el.isContentEditable) return hostOf(el)
    if (el instanceof HTMLLabelElement && el.control) return el.control
    const inside = [...el.querySelectorAll(FIELDS), ...(tapin.shadow(el)?.querySelectorAll(FIELDS) ?? [])]
    return inside.length === 1 ? inside[0] : null
  }

  const isCode = el => isInput(el) && (el.autocomplete ?? '').split(/\s+/).includes('one-time-code')

  const kindOf = el => {
    if (el instanceof HTMLTextAreaElement) return 'textarea'
    if (el instanceof HTMLSelectElement) return 'select'
    if (isInput(el)) return isCode(el) && el.type !== 'password' ? 'one-time-code' : el.type
    return 'contenteditable'
  }

  // wayOf is how a person gives the field a value.
  const wayOf = el => {
    if (!isInput(el)) return el instanceof HTMLSelectElement ? 'choose' : 'type'
    if (TYPED.has(el.type)) return 'type'
    if (PICKED.has(el.type)) return 'pick'
    return { checkbox: 'tick', radio: 'tick', file: 'file' }[el.type] ?? 'none'
  }

  // isBox tells the boxes of one character each that codes are asked for with.
  const isBox = el => isInput(el) && TYPED.has(el.type) && el.maxLength === 1

  // boxesWith are all boxes of the code that one belongs to.
  const boxesWith = el => [...el.getRootNode().querySelectorAll('input')].filter(o => isBox(o) && o.form === el.form)

  const content = el => (isNative(el) ? el.value : el.textContent)

  // tell makes the page notice a value that was set for it.
  const tell = el => {
    el.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
    el.dispatchEvent(new Event('change', { bubbles: true }))
  }

  const hasFocus = el => {
    for (let node = el; node;) {
      const root = node.getRootNode()
      if (root.activeElement !== node) return false
      node = root instanceof ShadowRoot ? root.host : null
    }
    return true
  }

  const active = () => {
    let el = document.activeElement
    for (let root; el && (root = tapin.shadow(el))?.activeElement;) el = root.activeElement
    return el
  }

  const typable = el => !!el && (isNative(el) || el.isContentEditable) && wayOf(el) === 'type'

  const describe = el => ({
    id: tapin.keep(el),
    kind: kindOf(el),
    way: wayOf(el),
    origin: self.origin,
    focused: hasFocus(el),
    empty: isInput(el) && el.type === 'number' ? el.value === '' && !el.validity.badInput : content(el) === '',
    locked: el.matches(':disabled') ? 'disabled' : el.readOnly && ['type', 'pick'].includes(wayOf(el)) ? 'read-only' : '',
    boxes: isBox(el) || isCode(el),
    multiple: !!el.multiple,
    folder: !!el.webkitdirectory,
    accept: el.accept ?? '',
  })

  // field describes the field that a kept element stands for; null when it is none.
  tapin.field = ({ id }) => {
    const el = tapin.kept(id)
    const field = el?.isConnected ? fieldOf(el) : null
    return field && describe(field)
  }

  // fieldWants is what must hold before a field can be used in the way of its
  // kind: what is typed into has to be reached by a click, while boxes and lists
  // are often hidden behind something prettier. A label stands for its field, but
  // nobody types into it.
  tapin.fieldWants = el => {
    const field = fieldOf(el), way = field && wayOf(field)
    if (way === 'type' || way === 'pick') return { visible: true, stable: true, enabled: true, hit: way === 'type', editable: field === el }
    return field ? { enabled: true } : {}
  }

  // focusedField describes the field that has the focus in this document.
  // deeper: the focus is in a frame inside it.
  tapin.focusedField = () => {
    const el = active()
    const deeper = el instanceof HTMLIFrameElement || el instanceof HTMLFrameElement || el instanceof HTMLObjectElement
    const host = el && !isNative(el) && el.isContentEditable ? hostOf(el) : el
    return { here: document.hasFocus() && !deeper, field: !deeper && typable(host) ? describe(host) : null }
  }

  // toEnd puts the caret behind what is there. Fields for e-mail addresses and
  // numbers know no positions; there the selection itself is moved.
  const toEnd = el => {
    if (!isNative(el)) {
      getSelection().selectAllChildren(el)
      getSelection().collapseToEnd()
      return
    }
    try {
      el.setSelectionRange(el.value.length, el.value.length)
    } catch {
      if (hasFocus(el)) getSelection().modify('move', 'forward', 'documentboundary')
    }
  }

  // enter gives the focus without a click. The caret is placed before, so that
  // a page that moves it when the focus comes has the last word.
  const enter = el => {
    toEnd(el)
    el.focus()
    try { el.setSelectionRange?.(el.selectionStart, el.selectionEnd) } catch { toEnd(el) }
  }

  // watch is the typing under way: at most one in a document. It ends by itself
  // when no key comes, as whoever began it may be gone and the next to type a person.
  let watch = null
  const PATIENCE = 5000

  const watching = e => {
    if (watch && performance.now() > watch.until) watch = null
    if (!watch || !e.isTrusted) return false
    watch.until = performance.now() + PATIENCE
    return true
  }

  const placeOf = el => [...el.getRootNode().querySelectorAll(el.localName)].indexOf(el)

  // held is the field being typed into. A page that draws its field anew at
  // every key has put another in its place: the one with the focus if it is
  // alike, or the one with the same name or place.
  const held = () => {
    const { el, root, place } = watch
    if (el.isConnected) return el
    const alike = other => other && other.localName === el.localName && other.type === el.type
    const now = active()
    const from = root.isConnected ? root : document
    const twin = alike(now) ? now : [
      el.id && from.getElementById?.(el.id),
      el.name && from.querySelector(`${el.localName}[name="${CSS.escape(el.name)}"]`),
      from.querySelectorAll(el.localName)[place],
    ].find(alike)
    if (twin) watch.el = twin
    return watch.el
  }

  // onKey keeps the focus where the text belongs: what a page's late autofocus
  // would make of half a password is not for any other field to see. Between the
  // key and its character there is time to take the focus back. Boxes for codes
  // move it themselves, and are meant to.
  const onKey = e => {
    if (!watching(e)) return
    const el = watch.boxes ? active() : held()
    if (hasFocus(el)) {
      watch.keys++
      return
    }
    e.stopImmediatePropagation()
    enter(el)
    if (hasFocus(el)) watch.keys++
    else e.preventDefault()
  }

  // onKeyUp does so before text that comes without a key. A person's typing may
  // end with the page moving on to the next field.
  const onKeyUp = e => {
    if (watching(e) && !watch.boxes && !watch.free && !hasFocus(held())) enter(watch.el)
  }

  // onText stops what would still reach another field, and counts what came
  // without a key.
  const onText = e => {
    if (!watching(e)) return
    if (watch.boxes || hasFocus(held())) {
      if (/[^\x00-\x7e]/.test(e.data ?? '')) watch.inserts++
      return
    }
    e.preventDefault()
    e.stopImmediatePropagation()
  }

  const onInput = e => {
    if (watching(e)) watch.inputs++
  }

  const listen = () => {
    tapin.hears(['keydown'], onKey)
    tapin.hears(['keyup'], onKeyUp)
    tapin.hears(['beforeinput'], onText)
    tapin.hears(['input'], onInput)
  }
  listen()

  // emptyBoxes makes room for a whole new code.
  const emptyBoxes = el => {
    for (const box of boxesWith(el)) {
      if (box.value === '') continue
      box.value = ''
      tell(box)
    }
    if (!hasFocus(el)) enter(el)
  }

  // hold gives a field the focus, if need be, and watches over it until release.
  tapin.hold = ({ id, clear, free }) => {
    let el = tapin.kept(id)
    if (!el?.isConnected && typable(active())) el = active() // the click put another one there
    if (!el?.isConnected) return { gone: true }
    if (!hasFocus(el)) enter(el)
    if (!hasFocus(el)) return { focused: false }
    if (clear && isBox(el)) emptyBoxes(el)
    else if (clear && isNative(el)) el.select()
    listen()
    watch = {
      el, root: el.getRootNode(), place: placeOf(el), boxes: isBox(el) || isCode(el),
      clear, free, before: content(el), keys: 0, inserts: 0, inputs: 0, until: performance.now() + PATIENCE,
    }
    return { focused: true, ...describe(el) }
  }

  // native tells fields that the browser draws from those that are a page's work.
  tapin.native = ({ id }) => isNative(tapin.kept(id))

  // entrust is for a value that this document alone may have: what it returns is
  // held from outside, and dies with the document. Everything up to the last
  // character happens in here, as when a password manager fills a form.
  tapin.entrust = ({ id }) => {
    const el = tapin.kept(id)
    return { type: args => typeHere(el, args) }
  }

  const typeHere = async (el, { value, hidden }) => {
    if (!el?.isConnected || !typable(el)) return { gone: true }
    if (describe(el).locked) return { locked: describe(el).locked }
    if (hidden) (isBox(el) ? boxesWith(el) : [el]).forEach(box => tapin.hide(box, value))
    if (!hasFocus(el)) enter(el)
    if (!hasFocus(el)) return { unfocused: true }
    if (isBox(el)) return typeBoxes(el, value)
    if (isNative(el)) el.select()
    else getSelection().selectAllChildren(el)
    insert(el, value)
    for (const until = performance.now() + 600; el.isConnected && content(el) === '' && performance.now() < until;) await pause(20)
    return { took: !el.isConnected || content(el) !== '' }
  }

  const typeBoxes = async (el, value) => {
    emptyBoxes(el)
    for (const [i, character] of [...value].entries()) {
      const now = active()
      if (!isBox(now)) return { took: false }
      insert(now, character)
      if (i < value.length - 1) await tapin.onward()
    }
    return { took: true }
  }

  // insert replaces what is selected, with the events of typing. Where editing is
  // not possible that way the value is set and told of.
  const insert = (el, text) => {
    const key = kind => el.dispatchEvent(new KeyboardEvent(kind, { bubbles: true, composed: true, cancelable: true }))
    key('keydown')
    if (!document.execCommand('insertText', false, text) && isNative(el)) {
      el.value = text
      tell(el)
    }
    key('keyup')
  }

  // A field that nobody can see shows nothing of what it takes: editors and
  // terminals that draw by themselves keep such a one for the keyboard.
  const shows = el => {
    const box = el.getBoundingClientRect()
    return box.width >= 4 && box.height >= 4 && getComputedStyle(el).opacity !== '0'
  }

  const changed = () => {
    const el = held()
    if (watch.boxes) return watch.inputs > 0
    if (watch.clear ? watch.inputs > 0 && content(el) !== '' : content(el) !== watch.before) return true
    if (!el.isConnected || !shows(el)) return true
    return isInput(el) && el.type === 'number' && el.validity.badInput && watch.inputs > 0
  }

  // same tells whether the field shows what was typed. A page may have set it
  // apart with blanks and brackets, or in capitals.
  const same = () => {
    const bare = text => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
    const now = content(held())
    return now === watch.value || bare(watch.value) !== '' && bare(now) === bare(watch.value)
  }

  // release ends the watch and tells what came of it. A controlled field shows
  // its new value only after the page has drawn, so that "unchanged" takes a moment.
  // With open the gate is opened as well, where this is the only document.
  tapin.release = async ({ expect, open }) => {
    const gate = () => open ? { gate: tapin.payDisarm() } : {}
    if (!watch) return { gone: true, ...gate() }
    for (const until = performance.now() + 600; expect && !changed() && performance.now() < until;) await pause(20)
    const told = { changed: !expect || changed(), keys: watch.keys, inserts: watch.inserts, other: watch.value !== undefined && !same() }
    watch = null
    return told.other ? told : { ...told, ...gate() }
  }

  // write puts a text into the field that is held, as a whole, the way browsers
  // fill in forms, and lets go of it. A page that has a say in what is typed, or
  // makes something else of it, gets it key by key.
  tapin.write = ({ value, open }) => {
    if (!watch) return tapin.release({ open })
    const el = held()
    watch.value = value
    if (!hasFocus(el)) enter(el)
    el.select()
    const may = el.dispatchEvent(new InputEvent('beforeinput', { bubbles: true, composed: true, cancelable: true, inputType: 'insertText', data: value }))
    if (may && hasFocus(el)) insert(el, value)
    return tapin.release({ expect: may, open })
  }

  // onward waits after a character of a code until the focus is in a box that
  // has room. Where the page does not move it, the next empty box is entered, as
  // a person would.
  tapin.onward = async () => {
    const full = el => isBox(el) && el.value.length >= 1
    const from = active()
    if (!from || !isBox(from)) return
    for (const until = performance.now() + 250; performance.now() < until;) {
      const now = active()
      if (typable(now) && !full(now)) return
      await pause(10)
    }
    const boxes = boxesWith(from)
    const next = boxes.slice(boxes.indexOf(from) + 1).find(el => !full(el) && !el.disabled)
    if (next && hasFocus(from)) next.focus()
  }

  const FORMS = {
    date: 'a date such as 2030-01-31', time: 'a time such as 13:45', 'datetime-local': 'a date and time such as 2030-01-31T13:45',
    month: 'a month such as 2030-01', week: 'a week such as 2030-W05', color: 'a colour such as #3366ff', range: 'a number',
  }

  // limit is an attribute that says how far a value may go. A page can write
  // anything there; what is no number, date or time is not repeated.
  const limit = (value, without) => /^[-+.:TW\de]{1,32}$/.test(value) ? value : without

  // pick sets a picker. The page's own bookkeeping of values lives in its own
  // world, so that setting the value here is seen as a change there. It answers
  // with what was wrong, never with a value.
  tapin.pick = ({ id, value }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    const before = el.value
    let wanted = value.trim()
    if (el.type === 'color') {
      const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(wanted)
      if (short) wanted = '#' + short.slice(1).map(c => c + c).join('')
      if (!/^#[0-9a-f]{6}$/i.test(wanted)) return { wrong: `it takes ${FORMS.color}` }
    }
    if (el.type === 'range' && (wanted === '' || !Number.isFinite(Number(wanted)))) return { wrong: `it takes ${FORMS.range}` }
    el.focus()
    el.value = wanted
    let wrong = ''
    if (wanted !== '' && el.value === '') wrong = `it takes ${FORMS[el.type]}`
    else if (el.type === 'range' && Number(el.value) !== Number(wanted)) wrong = `it takes a number from ${limit(el.min, '0')} to ${limit(el.max, '100')} in steps of ${limit(el.step, '1')}`
    else if (el.validity.rangeUnderflow || el.validity.rangeOverflow) wrong = `it takes something from ${limit(el.min, 'any')} to ${limit(el.max, 'any')}`
    if (wrong) {
      el.value = before
      return { wrong }
    }
    if (el.value !== before) tell(el)
    return {}
  }

  const labelOf = el => tidy([...(el.labels ?? [])].map(l => l.textContent).join(' ') || el.getAttribute('aria-label') || '')
  const YES = new Set(['true', 'on', 'yes', '1', 'checked'])
  const NO = new Set(['false', 'off', 'no', '0', 'unchecked', ''])

  // tickable finds what has to be clicked so that a box is as wanted: id 0 when
  // it is so already. A radio button may be named by its value or label.
  tapin.tickable = ({ id, value }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    const said = tidy(value).toLowerCase()
    if (el.type === 'checkbox') {
      if (!YES.has(said) && !NO.has(said)) return { wrong: 'it takes true or false' }
      return { id: el.checked === YES.has(said) && !el.indeterminate ? 0 : id }
    }
    const group = el.name ? [...el.getRootNode().querySelectorAll(`input[type=radio][name="${CSS.escape(el.name)}"]`)].filter(o => o.form === el.form) : [el]
    const meant = group.find(o => o.value === value) ?? group.find(o => labelOf(o).toLowerCase() === said && said !== '') ?? (YES.has(said) ? el : null)
    if (!meant) return { wrong: NO.has(said) ? 'a radio button is turned off by choosing another' : 'no radio button of its group has that value or label' }
    if (meant.disabled) return { wrong: 'that choice is disabled' }
    return { id: meant.checked ? 0 : tapin.keep(meant) }
  }

  // tick clicks a box that is drawn by something else than itself.
  tapin.tick = ({ id }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    const seen = node => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width > 0
    if (!seen(el) && ![...(el.labels ?? [])].some(seen) && !(el.parentElement && seen(el.parentElement))) return { wrong: 'it is not visible, and neither is its label' }
    el.click()
    return {}
  }

  tapin.ticked = ({ id }) => {
    const el = tapin.kept(id)
    return { on: !!el?.isConnected && el.checked }
  }

  const closed = option => option.disabled || (option.parentElement instanceof HTMLOptGroupElement && option.parentElement.disabled)

  const findOption = (options, wanted) => {
    const said = tidy(wanted)
    return options.find(o => o.value === wanted) ??
      options.find(o => tidy(o.label) === said) ??
      options.find(o => tidy(o.label).toLowerCase() === said.toLowerCase()) ??
      (/^\d+$/.test(said) ? options[Number(said)] : undefined)
  }

  // choose sets a native select, by value, label or place. A single text may
  // name several choices of a list that takes them, one a line or with commas.
  tapin.choose = ({ id, values, several }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    const options = [...el.options]
    if (several && el.multiple && !findOption(options, values[0])) values = values[0].split(/[\n,]/).map(tidy).filter(Boolean)
    if (!el.multiple && values.length !== 1) return { wrong: 'it takes exactly one choice' }
    const meant = []
    for (const [at, wanted] of values.entries()) {
      const option = findOption(options, wanted)
      if (!option) return { missing: true, at, choices: options.slice(0, 20).map(o => tidy(o.label)) }
      if (closed(option)) return { disabled: true, at }
      meant.push(option)
    }
    const before = options.map(o => o.selected)
    el.focus()
    for (const option of options) option.selected = meant.includes(option)
    if (options.some((o, i) => o.selected !== before[i])) tell(el)
    return { chosen: meant.map(o => tidy(o.label)) }
  }

  // chooser tells what kind of list an element is: a native one, or one that the
  // page draws, and whether that is open.
  tapin.chooser = ({ id }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    const field = fieldOf(el)
    if (field instanceof HTMLSelectElement) return { native: describe(field) }
    return { open: el.getAttribute('role') === 'listbox' || el.getAttribute('aria-expanded') === 'true', typing: typable(field) && !field.readOnly }
  }

  const OPTIONS = '[role=option], [role=menuitemradio], [role=menuitemcheckbox], [role=menuitem], [role=treeitem]'

  // optionsOf are the choices that belong to a drawn list: inside it, in what it
  // says it controls, or else all that can be seen now.
  const optionsOf = el => {
    const owned = [el, ...el.querySelectorAll('[aria-controls], [aria-owns]')].flatMap(from => ['aria-controls', 'aria-owns'].flatMap(name => (from.getAttribute(name) ?? '').split(/\s+/)))
      .map(name => name && el.getRootNode().getElementById?.(name)).filter(Boolean)
    for (const place of [el, ...owned]) {
      const inside = [...place.querySelectorAll(OPTIONS)].filter(tapin.visible)
      if (inside.length) return inside
    }
    return tapin.roots().flatMap(root => [...root.querySelectorAll(OPTIONS)]).filter(tapin.visible)
  }

  // option finds one choice of a drawn list, by what is written on it, its value or place.
  tapin.option = ({ id, value }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { gone: true }
    const all = optionsOf(el)
    const text = o => tidy(o.getAttribute('aria-label') || o.innerText)
    const found = all.find(o => text(o) === tidy(value)) ?? all.find(o => tapin.fold(text(o)) === tapin.fold(value)) ??
      all.find(o => o.dataset.value === value || o.getAttribute('value') === value) ?? (/^\d+$/.test(value) ? all[Number(value)] : undefined)
    if (!found) return { missing: true, choices: all.slice(0, 20).map(text) }
    if (found.getAttribute('aria-disabled') === 'true') return { disabled: true }
    return { role: found.getAttribute('role'), name: text(found), on: found.getAttribute('aria-selected') === 'true' || found.getAttribute('aria-checked') === 'true' }
  }

  // filesOf finds the file input that an element stands for, also a hidden one.
  tapin.filesOf = ({ id }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return null
    const isFile = o => isInput(o) && o.type === 'file'
    const label = el.closest('label')
    const inside = [...el.querySelectorAll('input[type=file]'), ...(tapin.shadow(el)?.querySelectorAll('input[type=file]') ?? [])]
    const input = isFile(el) ? el : isFile(label?.control) ? label.control : inside.length === 1 ? inside[0] : null
    return input && describe(input)
  }
})(globalThis.tapin ??= {})
