// What a page is like, as far as a record may know it: what it is made of
// without what changes by itself, the names of what it stores, and whether
// something can be seen on it. Nothing here moves, focuses or touches anything.
(tapin => {
  if (tapin.observe) return

  const eyes = tapin.eyes
  const { drawn, clipped, each, skipped, frameOwner, isHeading, canHost, suspect } = eyes

  // Words that stay. Numbers, dates, times and what is counted by them do not:
  // a clock, a price and "3 new messages" are the same a minute later.
  const ago = /\b(?:just now|(?:(?:an?|a few|few|about an?|less than an?)\s+)?(?:moment|second|minute|hour|day|week|month|year)s? ago|today|yesterday|tomorrow|tonight)\b/g
  const greeting = /\bgood (?:morning|afternoon|evening|night|day)\b/g
  const units = new Set(['am', 'pm', 'a', 'p', 's', 'm', 'h', 'd', 'sec', 'min', 'hr', 'second', 'minute', 'hour', 'day', 'week', 'month', 'year', 'st', 'nd', 'rd', 'th', 'k', 'b', 'kb', 'mb', 'gb', 'x'])

  // calendar is how the page's language and ours name days and months.
  let calendar, spokenHere
  const named = () => {
    const lang = document.documentElement.lang || navigator.language
    if (calendar && spokenHere === lang) return calendar
    calendar = new Set(), spokenHere = lang
    for (const l of new Set([lang, 'en'])) {
      for (const width of ['long', 'short']) {
        let month, weekday
        try {
          month = new Intl.DateTimeFormat(l, { month: width, timeZone: 'UTC' })
          weekday = new Intl.DateTimeFormat(l, { weekday: width, timeZone: 'UTC' })
        } catch {
          continue // the page names a language that there is not
        }
        for (let i = 0; i < 12; i++) for (const word of parts(month.format(Date.UTC(2024, i, 1 + i)).toLowerCase())) calendar.add(word)
        for (let i = 0; i < 7; i++) for (const word of parts(weekday.format(Date.UTC(2024, 0, 1 + i)).toLowerCase())) calendar.add(word)
      }
    }
    return calendar
  }

  const parts = text => text.split(/[^\p{L}\p{M}\p{N}]+/u).filter(Boolean)

  const mostWords = 120, longestWord = 30

  const steady = text => {
    const dates = named()
    let out = '', counted = false
    for (let word of parts(text.slice(0, 2000).toLowerCase().replace(/['’]/g, '').replace(ago, ' ').replace(greeting, 'good'))) {
      if (/\p{N}/u.test(word) || word.length > longestWord) { counted = true; continue }
      if (dates.has(word)) continue
      if (counted) {
        word = word.replace(/s$/, '')
        if (units.has(word)) continue
        word = word.slice(0, 4) // one item, two items
        counted = false
      }
      out += ' ' + word
      if (out.length > mostWords) break
    }
    return out
  }

  // Parts of a page that come, go and turn without anybody's doing.
  const livelyTags = new Set(['time', 'progress', 'meter', 'marquee', 'output', 'canvas', 'video', 'audio', 'svg', 'math'])
  const livelyRoles = new Set(['timer', 'marquee', 'log', 'status', 'progressbar', 'tooltip', 'feed', 'scrollbar'])
  const adverts = /(?:^|[\s_-])(?:ads?|adslot|adunit|adbox|adsbygoogle|advert\w*|sponsor\w*|dfp|gpt|taboola|outbrain|doubleclick)(?=$|[\s_\d-])/i
  const turning = /(?:^|[\s_-])(?:carousel|slider|slideshow|swiper|slick|splide|glide|flickity|owl|marquee|ticker|rotator)(?=$|[\s_\d-])/i
  const waiting = /(?:^|[\s_-])(?:spinner|loader|loading|skeleton|shimmer|throbber|countdown|clock|timestamp|timeago)(?=$|[\s_\d-])/i
  const chats = /intercom|zendesk|crisp-|tawk|livechat|chat-widget|drift-/i
  const vendors = /onetrust|didomi|cookiebot|usercentrics|trustarc|truste|osano|quantcast|cookieyes|klaro/i
  const consent = /cookie|consent|gdpr|privacy/i
  const offers = /newsletter|subscribe|exit-intent|promo|app-banner|smart-banner/i

  const called = el => (typeof el.className === 'string' ? el.className : '') + ' ' + el.id + ' ' + (el.getAttribute('aria-label') ?? '') + ' ' + (el.getAttribute('aria-roledescription') ?? '')

  // weighty is what no name can make unimportant: what the page is about.
  const holdsMain = el => el === document.body || el.matches('html,main,form') || Boolean(el.querySelector('main,input[type=password],[autocomplete~=one-time-code]'))
  let pageful = 0 // how much the page says in all
  const weighty = el => holdsMain(el) || el.textContent.length > .6 * pageful

  const floats = cs => cs.position === 'fixed' || cs.position === 'sticky'
  const isDialog = el => el.localName === 'dialog' || ['dialog', 'alertdialog'].includes(el.getAttribute('role')) || el.getAttribute('aria-modal') === 'true'

  // passing tells what is left out with everything in it.
  const passing = (el, tag, cs) => {
    if (livelyTags.has(tag)) return true
    const role = el.getAttribute('role')
    if (role && livelyRoles.has(role.trim().toLowerCase())) return !weighty(el)
    const live = el.getAttribute('aria-live')
    if (live === 'polite') return !weighty(el)
    if (el.hasAttribute('data-ad-slot') || el.hasAttribute('data-google-query-id')) return true
    // Shown for as long as the mouse or the keyboard is there.
    if (cs.position === 'absolute' && el.parentElement?.matches('li:hover,nav :hover,[aria-haspopup]:hover,[role=menubar] :hover,li:focus-within')) return true
    if (tag === 'a' && floats({ position: cs.position === 'absolute' ? 'fixed' : cs.position }) && el.getAttribute('href')?.startsWith('#')) return true
    if ((role === 'alert' || live === 'assertive') && floating(el)) return true // a toast
    const name = called(el)
    if (!name.trim()) return false
    if (adverts.test(name) || turning.test(name) || waiting.test(name) || chats.test(name)) return !weighty(el)
    if (!floats(cs) && !isDialog(el) && cs.position !== 'absolute') return false
    if (vendors.test(name) || consent.test(name) && /cookie/i.test(el.textContent) || offers.test(name)) return !weighty(el)
    return false
  }

  const floating = el => {
    for (let up = el; up && up !== document.body; up = up.parentElement) if (floats(getComputedStyle(up))) return true
    return false
  }

  // rows tells a long list of the same: what stands in it is data, and which of
  // it is shown today is no matter of structure.
  const few = 8
  const rows = el => {
    if (el.childElementCount <= few || el.closest('nav,header,[role=navigation],[role=menu],[role=menubar],[role=tablist],[role=toolbar]')) return false
    const alike = new Map()
    for (const child of el.children) {
      const tag = child.localName, role = child.getAttribute('role')
      const looks = ['li', 'tr', 'article'].includes(tag) || ['row', 'listitem', 'option', 'article'].includes(role) ? tag : child.className && child.className + tag
      if (looks) alike.set(looks, (alike.get(looks) ?? 0) + 1)
    }
    return Math.max(0, ...alike.values()) >= .8 * el.childElementCount && !holdsMain(el)
  }

  const fields = new Set(['input', 'textarea', 'select'])
  const plain = new Set(['submit', 'button', 'reset', 'image'])

  // fieldLine is a field: its kind, its label, and that something is in it, but
  // never what.
  const fieldLine = el => {
    if (!tapin.visible(tapin.surface(el))) return ''
    const label = steady([...tapin.labelsOf(el)].map(l => l.textContent).join(' ') || el.getAttribute('aria-label') || el.getAttribute('placeholder') || '')
    const kind = tapin.secret(el) ? 'secret' : el.localName === 'input' ? 'field ' + el.type : 'field ' + (el.localName === 'select' ? 'select' : 'text')
    const set = el.localName === 'select' || el.readOnly ? '' : el.type === 'checkbox' || el.type === 'radio' ? el.checked : (el.isContentEditable ? el.textContent : el.value) !== ''
    return kind + label + (set ? ' set' : '')
  }

  const kindOf = (el, tag, role) => {
    if (isHeading(tag) || role === 'heading') return 'heading'
    if (tag === 'button' || tag === 'summary' || role === 'button' || tag === 'input') return 'button'
    if (tag === 'a' && el.hasAttribute('href') || ['link', 'menuitem', 'tab'].includes(role)) return 'link'
    if (role === 'alert' || el.getAttribute('aria-live') === 'assertive') return 'alert'
    return ''
  }

  const nameless = el => el.getAttribute('aria-label') || el.querySelector('img[alt]')?.alt || el.querySelector('[aria-label]')?.getAttribute('aria-label') || el.title || (el.localName === 'input' ? el.value : '')

  const mostLines = 4000, mostNodes = 60000

  // structure are the lines a page consists of; a number stands for a frame.
  const structure = () => {
    eyes.look()
    eyes.begin()
    for (const root of tapin.roots()) tapin.learnLabels(root, root === document)
    pageful = document.body?.textContent.length ?? 0
    const lines = new Set()
    let run = '', nodes = 0
    const put = (kind, words) => { if (words && lines.size < mostLines) lines.add(kind + words) }
    const flush = kind => {
      if (run.trim()) put(kind, steady(run))
      run = ''
    }
    const read = (el, kind) => {
      const tag = el.localName
      if (++nodes > mostNodes || skipped.has(tag) || tag === 'br') { run += ' '; return }
      const cs = getComputedStyle(el), how = drawn(el, cs)
      if (fields.has(tag) && !plain.has(el.type)) return el.type !== 'hidden' && how && put('', fieldLine(el))
      if (!how || clipped(el, cs) || passing(el, tag, cs)) return
      if (frameOwner(el)) {
        if (how === 2 && tapin.heldBy(el) && el.getBoundingClientRect().width > 2) lines.add(tapin.heldBy(el))
        return
      }
      if (el.isContentEditable) return put('', fieldLine(el))
      const own = kindOf(el, tag, el.getAttribute('role'))
      if (own) {
        flush(kind)
        inside(el, how, own)
        if (run.trim()) flush(own)
        else if (own !== 'alert') put(own, steady(nameless(el)))
        return
      }
      const block = !cs.display.startsWith('inline') && cs.display !== 'contents'
      if (block) flush(kind)
      if (isDialog(el)) put('dialog', ' open')
      if (rows(el)) put('rows ', tag)
      else inside(el, how, kind)
      if (block) flush(kind)
    }
    const inside = (el, how, kind) => {
      const before = nodes + run.length
      each(el, child => {
        if (child.nodeType === Node.ELEMENT_NODE) read(child, kind)
        else if (child.nodeType === Node.TEXT_NODE && how === 2) run += child.data
      })
      if (canHost.test(el.localName) && !tapin.shadow(el)) suspect(el, el.localName, before === nodes + run.length)
    }
    if (document.body) read(document.body, 'text')
    flush('text')
    // Somebody has shown to be a person: the answer is in a field nobody sees.
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll('[name=g-recaptcha-response],[name=h-captcha-response],[name=cf-turnstile-response]')) if (el.value) put('captcha', ' answered')
    }
    tapin.forgetLabels()
    return [...lines]
  }

  // typed are the values that a person may have written, so that they can be
  // hidden wherever else they stand.
  const unwritten = new Set(['hidden', 'submit', 'button', 'reset', 'image', 'checkbox', 'radio', 'file', 'range', 'color'])
  const typed = () => {
    const values = new Set()
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll('input,textarea,[contenteditable]:not([contenteditable=false])')) {
        if (el.localName === 'input' && unwritten.has(el.type)) continue
        const value = (fields.has(el.localName) ? el.value : el.textContent).trim()
        if (value.length >= 3 && value.length <= 1000 && values.size < 300) values.add(value)
      }
    }
    return [...values]
  }

  // keysOf are the names in a store, and never a value; none where a page has none.
  const keysOf = store => {
    try {
      return Object.keys(self[store]).sort().slice(0, 200).map(k => k.slice(0, 200))
    } catch {
      return []
    }
  }

  tapin.observe = ({ main }) => {
    const seen = { origin: self.origin, lines: structure(), values: typed(), opaque: eyes.opaque() }
    return main ? { ...seen, url: location.href, title: document.title.slice(0, 500), local: keysOf('localStorage'), session: keysOf('sessionStorage') } : seen
  }

  // shows says of each thing whether it can be seen here: 1, 0, or -1 for one
  // that cannot be understood.
  tapin.shows = ({ things }) => things.map(locator => {
    try {
      const hit = tapin.best(locator)
      return hit && tapin.visible(tapin.surface(hit.aim)) ? 1 : 0
    } catch (e) {
      return tapin.badLocator(e) && -1
    }
  })

  // showsFrame tells whether a frame can be seen in this document.
  tapin.showsFrame = frame => tapin.roots().some(root => [...root.querySelectorAll('iframe,frame,object,embed,fencedframe')]
    .some(el => tapin.heldBy(el) === frame && tapin.visible(el) && el.getBoundingClientRect().width > 2))

  // mayHide tells whether there is anything new that no script can look into.
  tapin.mayHide = () => {
    eyes.begin()
    for (const root of tapin.roots()) {
      for (const el of root.querySelectorAll('*')) if (canHost.test(el.localName) && !tapin.shadow(el)) suspect(el, el.localName, !el.firstChild)
    }
    return eyes.opaque()
  }
})(globalThis.tapin ??= {})
