// Acting like a careful person: only on what is there, visible, at rest, enabled
// and not covered; and afterwards knowing who received it.
(tapin => {
  if (tapin.ready) return

  const up = (node, is) => {
    for (; node; node = tapin.above(node)) if (node.nodeType === Node.ELEMENT_NODE && is(node)) return node
    return null
  }

  // frame ends with the next painted frame and tells whether there was one; one
  // that is never painted, as in a frame out of sight, does not hold us up.
  const frame = (patience = 100) => new Promise(done => {
    const late = setTimeout(done, patience, false)
    requestAnimationFrame(() => { clearTimeout(late); done(true) })
  })

  // pause ends after a time, or sooner when the document changes, but not before
  // `least`: a page that never rests shall not keep us searching all the time.
  const pause = (ms, least) => new Promise(done => {
    const began = performance.now()
    let timer
    const end = () => { observer.disconnect(); clearTimeout(timer); done() }
    const observer = new MutationObserver(() => {
      observer.disconnect()
      clearTimeout(timer)
      timer = setTimeout(end, Math.max(0, least - (performance.now() - began)))
    })
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
    timer = setTimeout(end, ms)
  })

  const backOff = [0, 0, 20, 100, 100, 500]

  // repeat asks again and again until the answer is done, or the time is over.
  const repeat = async (within, ask) => {
    const until = performance.now() + within
    for (let turn = 0; ; turn++) {
      const began = performance.now()
      const answer = await ask(turn, began)
      const left = until - performance.now()
      if (answer.done || left <= 0) return answer
      const ms = Math.min(left, backOff[Math.min(turn, backOff.length - 1)])
      await (ms ? pause(ms, Math.min(ms, 20 + 2 * (performance.now() - began))) : frame())
    }
  }

  // disabled is who keeps the element from being used. A disabled fieldset
  // speaks through its controls: links in it work.
  const disabled = el => {
    const control = el.localName === 'label' && el.control
    if (control && control.matches(':disabled')) return control
    return up(el, n => n.localName !== 'fieldset' && n.matches(':disabled') || n.getAttribute('aria-disabled') === 'true' || n.inert)
  }

  const notTyped = new Set(['button', 'submit', 'reset', 'image', 'checkbox', 'radio', 'file', 'hidden'])

  tapin.editable = el => {
    if (el.isContentEditable) return true
    if (el.localName === 'input') return !notTyped.has(el.type) && !el.readOnly
    if (el.localName === 'textarea') return !el.readOnly
    return el.localName === 'select' || ['textbox', 'searchbox', 'combobox', 'spinbutton'].includes(el.getAttribute('role'))
  }

  const pick = ({ locator, id }) => {
    if (!id) return tapin.best(locator)
    const el = tapin.kept(id)
    return el?.isConnected ? { el, aim: el, rank: 0 } : null
  }

  // deepest is what is drawn on top at a point, shadow roots included.
  tapin.deepest = (x, y) => {
    let el = document.elementFromPoint(x, y)
    for (;;) {
      const root = el && tapin.shadow(el)
      const inner = root?.elementFromPoint(x, y)
      if (!inner || inner === el || inner.getRootNode() !== root) return el
      el = inner
    }
  }

  const clip = r => {
    const left = Math.max(r.left, 0), top = Math.max(r.top, 0)
    return { left, top, width: Math.min(r.right, innerWidth) - left, height: Math.min(r.bottom, innerHeight) - top }
  }

  // spots are the points of an element worth trying: the middle first, then the
  // rest of it, on each line that it runs over.
  const spots = el => {
    const parts = tapin.boxes(el).map(clip).filter(r => r.width > 0 && r.height > 0)
    parts.sort((a, b) => b.width * b.height - a.width * a.height)
    const at = (r, fx, fy) => ({ x: r.left + r.width * fx, y: r.top + r.height * fy })
    const out = parts.slice(0, 8).map(r => at(r, .5, .5))
    for (const r of parts.slice(0, 4)) {
      for (const fy of [.5, .25, .75, .1, .9]) for (const fx of [.5, .25, .75, .1, .9]) if (fx !== .5 || fy !== .5) out.push(at(r, fx, fy))
    }
    return out
  }

  const reaches = (hit, el, surface) => tapin.within(hit, surface) || tapin.within(hit, el) ||
    Boolean(up(hit, n => n.localName === 'label' && n.control === el))

  // strike looks for a point at which a click would reach the element. A point
  // on something else inside it that is clickable itself is second best.
  const strike = (el, surface) => {
    let second = null, cover = null
    for (const p of spots(surface)) {
      const hit = tapin.deepest(p.x, p.y)
      if (!hit || !reaches(hit, el, surface)) {
        cover ??= hit
        continue
      }
      const near = up(hit, tapin.clickable)
      if (!near || near === el || near === surface || !tapin.within(near, el)) return { point: p }
      second ??= p
    }
    return second ? { point: second } : { cover }
  }

  // Each try puts the element somewhere else, out from under fixed headers and footers.
  const alignments = ['center', 'end', 'start', 'nearest']

  const bring = (el, turn) => {
    const block = alignments[turn % alignments.length]
    const from = el.getClientRects().length ? el : el.firstElementChild ?? el.parentElement
    from?.scrollIntoView({ block, inline: block === 'start' ? 'center' : 'nearest', behavior: 'instant' })
  }

  const fills = el => {
    const r = el.getBoundingClientRect()
    return r.left <= 0 && r.top <= 0 && r.right >= innerWidth && r.bottom >= innerHeight
  }

  const boxOf = el => {
    const r = tapin.boxes(el)[0] ?? el.getBoundingClientRect()
    return [r.x, r.y, r.width, r.height]
  }

  // onTop is a point as mouse events take it: with a page zoomed in by fingers,
  // what the glass shows is not where the layout begins.
  const onTop = p => window === window.top && window.visualViewport
    ? { x: p.x - visualViewport.offsetLeft, y: p.y - visualViewport.offsetTop } : p

  const info = el => {
    const [x, y, width, height] = boxOf(el)
    return { tag: el.localName, type: el.type ?? '', what: tapin.describe(el), box: { x, y, width, height } }
  }

  const animations = el => document.getAnimations().filter(a => a.playState === 'running' && a.effect?.target && tapin.within(el, a.effect.target))

  // timed is what moves by itself as time goes by, and not as a person scrolls.
  const timed = a => a.timeline === document.timeline && a.playbackRate !== 0

  const tried = fn => { try { return fn() } catch { return null } } // what is wrong with a locator is for others to say

  // unfit says what is wrong with an element that is there, if anything is.
  const unfit = (want, el, surface) => {
    if ((want.visible || want.hit) && !tapin.visible(surface)) return { state: 'hidden' }
    const by = want.enabled && disabled(el)
    if (by) return { state: 'disabled', by: tapin.describe(by) }
    return want.editable && !tapin.editable(el) ? { state: 'readonly' } : null
  }

  const sighting = hit => ({ by: '', id: tapin.keep(hit.el), rank: hit.rank, info: info(hit.el) })

  // fit is the answer about an element that can be used, with what was asked for
  // beside it. Where no other document has a say in it, what is to be clicked is
  // judged as well.
  const fit = (job, hit, point) => {
    const ok = { state: 'ok', ...sighting(hit), done: true, point: point && onTop(point), view: { width: innerWidth, height: innerHeight } }
    if (job.types) ok.watch = watch(job, hit, job.types)
    if (job.field) Object.assign(ok, { want: job.want, field: tapin.field({ id: ok.id }) })
    if (job.judge) ok.pay = tapin.payIntent({ ...job.judge, id: ok.id })
    if (job.coming) {
      ok.tells = !up(hit.el, works)
      Object.assign(watches.get(ok.watch), { tells: ok.tells, release: ok.pay?.armed ? tapin.payRelease : null })
    }
    return ok
  }

  // glance is the answer where nobody has to wait for it, and else null: the page
  // is at rest, and the element in sight and within reach.
  const glance = job => {
    const hit = pick(job)
    if (!hit) return null
    if (job.field) job.want = tapin.fieldWants(hit.el)
    const { want } = job, surface = tapin.surface(hit.aim)
    if (unfit(want, hit.el, surface) || want.stable && !tapin.atRest()) return null
    const point = want.hit ? strike(hit.el, surface).point : spots(surface)[0]
    return point ? fit(job, hit, point) : null
  }

  // examine says whether the element can be used now, and if not, why.
  const examine = async (job, turn) => {
    const at = turn === 0 && job.alone && !job.scroll && glance(job)
    if (at) return at
    let hit = pick(job)
    if (!hit) return { state: 'missing' }
    if (job.field) job.want = tapin.fieldWants(hit.el)
    const { want } = job
    const no = (state, by) => ({ ...sighting(hit), state, by: by ? tapin.describe(by) : '' })
    let surface = tapin.surface(hit.aim)
    const wrong = unfit(want, hit.el, surface)
    if (wrong) return { ...no(''), ...wrong }
    if (job.scroll) {
      bring(surface, job.scroll - 1 + turn)
    } else if ((want.hit || want.stable) && !spots(surface).length) {
      bring(surface, 0)
    }
    if (want.stable) {
      // An animation that was just begun only moves from the second frame on; one
      // that goes to and fro is in the same place twice, before it turns and after.
      const early = document.getAnimations().length ? boxOf(surface) : null
      let painted = !early || await frame(500)
      const before = boxOf(surface), clocks = new Map(animations(surface).filter(timed).map(a => [a, a.currentTime]))
      painted = await frame(500) && painted
      if (!hit.aim.isConnected || !surface.isConnected) {
        // Drawn anew meanwhile: the twin in its place is the same to a person.
        job.churn++
        hit = pick(job)
        if (!hit) return { state: 'missing' }
        surface = tapin.surface(hit.aim)
      }
      // On a busy machine a frame may not have come, or an animation not have begun
      // with it: then a moving thing seems to rest. In a frame out of sight none ever comes.
      const unknown = animations(surface).some(a => painted ? clocks.get(a) === a.currentTime : turn < 6)
      if (unknown || [early, boxOf(surface)].some(b => b && String(b) !== String(before))) return no('moving')
    }
    let point = spots(surface)[0]
    if (want.hit) {
      let got = strike(hit.el, surface)
      if (!got.point) {
        // In the middle of its scrollers first; from then on elsewhere each time,
        // unless nothing can be moved out from under what covers it all.
        if (turn === 0 || !got.cover || !fills(got.cover)) {
          bring(surface, turn)
          await frame()
          got = strike(hit.el, surface)
        }
        if (!got.point) return no(got.cover ? 'covered' : 'outside', got.cover)
      }
      point = got.point
    }
    return fit(job, hit, point)
  }

  // put gives a field of the browser's own its text, as a whole, and answers how
  // release does. Unless the field is known by its id it is only done where nobody
  // has to wait for anything, so that the page does nothing meanwhile but answer;
  // null says that nothing was done.
  tapin.put = ({ locator, id, gate, value, open }) => {
    const found = id ? { field: tapin.field({ id }) } : tried(() => glance({ locator, field: true }))
    const field = found?.field
    if (!field || field.locked || field.way !== 'type' || field.boxes || !tapin.native(field)) return null
    if (gate) tapin.payArm({ rules: gate })
    if (tapin.hold({ id: field.id, clear: true }).focused) return tapin.write({ value, open })
    if (gate) tapin.payDisarm()
    return null
  }

  // ready waits until the element can be used as wanted, and says where. It gives
  // up early when there is no visible match: another frame may have one.
  tapin.ready = async job => {
    job.churn = 0
    try {
      const answer = await repeat(job.within, async (turn, began) => {
        job.began ??= began
        const got = await examine(job, turn)
        const absent = got.state === 'missing' || got.state === 'hidden' && job.want.visible
        if (absent && performance.now() - job.began >= job.seek) got.done = true
        return got
      })
      return { ...answer, churn: job.churn }
    } catch (e) {
      return { state: 'missing', bad: tapin.badLocator(e) }
    }
  }

  // at is what is drawn at a point of the viewport.
  tapin.at = ({ x, y }) => {
    const el = tapin.deepest(x, y)
    const view = { width: innerWidth, height: innerHeight }
    return el ? { state: 'ok', id: tapin.keep(el), info: info(el), under: under(el, x, y), view } : { state: 'outside', view }
  }

  // under is the same point in the document that the element holds there, if any.
  const under = (el, x, y) => {
    if (!['iframe', 'frame', 'object', 'embed'].includes(el.localName)) return null
    const r = el.getBoundingClientRect(), style = getComputedStyle(el)
    const pad = side => parseFloat(style['padding' + side]) || 0
    const p = {
      x: (x - r.left) / (r.width / el.offsetWidth || 1) - el.clientLeft - pad('Left'),
      y: (y - r.top) / (r.height / el.offsetHeight || 1) - el.clientTop - pad('Top'),
    }
    const there = p.x >= 0 && p.y >= 0 && p.x < el.clientWidth - pad('Left') - pad('Right') && p.y < el.clientHeight - pad('Top') - pad('Bottom')
    return there ? { ...p, frame: tapin.heldBy(el) } : null
  }

  // gone waits until nothing that matches can be seen.
  tapin.gone = async job => {
    try {
      return await repeat(job.within, () => {
        const hit = pick(job)
        return !hit || !tapin.visible(tapin.surface(hit.aim)) ? { state: 'ok', done: true } : { state: 'visible', info: info(hit.el) }
      })
    } catch (e) {
      return { state: 'missing', bad: tapin.badLocator(e) }
    }
  }

  // outward carries a point inside a frame to the document around it, and looks
  // whether the frame is what a click there would reach.
  tapin.outward = (owner, { x, y, width, height }) => {
    const r = owner.getBoundingClientRect(), style = getComputedStyle(owner)
    const sx = r.width / owner.offsetWidth || 1, sy = r.height / owner.offsetHeight || 1
    const pad = side => parseFloat(style['padding' + side]) || 0
    const point = {
      x: r.left + sx * (owner.clientLeft + pad('Left') + (owner.clientWidth - pad('Left') - pad('Right')) * x / width),
      y: r.top + sy * (owner.clientTop + pad('Top') + (owner.clientHeight - pad('Top') - pad('Bottom')) * y / height),
    }
    const hit = tapin.deepest(point.x, point.y)
    const state = hit === owner ? 'ok' : hit ? 'covered' : 'outside'
    return { state, by: hit && hit !== owner ? tapin.describe(hit) : '', point: onTop(point), view: { width: innerWidth, height: innerHeight } }
  }

  // Watches listen for who receives what we are about to do. They are passive,
  // and gone afterwards.
  const watches = new Map()
  let named = Math.floor(Math.random() * 2 ** 31) * 2 ** 16 // another document's means nothing here

  const watch = (job, hit, types) => {
    const w = { heard: {}, missed: {}, other: '', lost: false, leaves: false, counts: {}, element: hit?.el ?? null, since: performance.now() }
    const mine = node => {
      // What stops at a frame's owner did not reach what is seen at that point.
      if (!hit) return !['iframe', 'frame', 'object', 'embed', 'fencedframe'].includes(node.localName)
      if (!hit.el.isConnected && job.locator && !tapin.within(node, hit.el)) {
        // A twin that answers to the same description is the same to a person.
        const twin = tapin.best(job.locator)
        if (twin) hit = twin
      }
      return tapin.within(node, hit.el) || reaches(node, hit.el, tapin.surface(hit.aim))
    }
    const hear = e => {
      const node = e.composedPath()[0] ?? e.target
      if (node.nodeType !== Node.ELEMENT_NODE) return
      if (mine(node)) {
        w.heard[e.type] = (w.heard[e.type] ?? 0) + 1
        if (e.type === 'mousedown' || e.type === 'pointerdown') w.element = hit?.el ?? node
        if (e.type === 'dragstart') w.drag = e
        if (came() && !up(node, works)) requestAnimationFrame(say)
      } else {
        w.missed[e.type] = (w.missed[e.type] ?? 0) + 1
        w.other = tapin.describe(node)
      }
    }
    // From inside a closed shadow root the window only sees the host.
    const root = hit?.el.getRootNode()
    const places = root instanceof ShadowRoot && root.mode === 'closed' ? [window, root] : [window]
    for (const type of types) {
      w.counts[type] = performance.eventCounts?.get(type) ?? 0
      for (const place of places) place.addEventListener(type, hear, { capture: true, passive: true })
    }
    const id = ++named
    w.end = () => {
      watches.delete(id)
      for (const type of types) for (const place of places) place.removeEventListener(type, hear, { capture: true })
      for (const type of job.coming?.types ?? []) removeEventListener(type, heardOut)
      removeEventListener('submit', send)
      window.navigation?.removeEventListener('navigate', leave)
    }
    // What is to come is told without being asked for, when everybody who listens
    // has heard it; where somebody keeps it to himself, in the next frame. It is not
    // where the browser itself does something about it, or the page leaves: whoever
    // asks then is answered when it has, and knows where it led.
    const came = () => job.coming?.types.some(type => w.heard[type] >= job.coming.times)
    const send = e => { w.sends = !e.defaultPrevented && replaces(e.target, e.submitter) }
    const leave = e => { w.leaves ||= !e.destination.sameDocument }
    const say = () => { if (w.tells && watches.has(id) && !w.leaves && !w.sends) globalThis.tapinHeard?.(JSON.stringify({ watch: id, ...told(w, w.release) })) }
    const heardOut = e => { if (came() && (e.defaultPrevented || !up(e.composedPath()[0], works))) say() }
    if (types.includes('click')) {
      addEventListener('submit', send)
      window.navigation?.addEventListener('navigate', leave)
    }
    for (const type of job.coming?.types ?? []) addEventListener(type, heardOut)
    // Nobody may come back to ask, as when a dialog stays open.
    for (const old of watches.values()) if (performance.now() - old.since > 60000) old.end()
    watches.set(id, w)
    return id
  }

  // works is what the browser does something about when it is clicked.
  const works = el => el.matches('a,area,button:not([type=button]),[popovertarget],[commandfor],input,select,option,label,summary,video,audio,object,embed')

  // replaces tells a form that is sent and whose answer comes in the document's place.
  const replaces = (form, by) => {
    const said = (name, own) => (own || tapin.plain.attribute(form, name) || '').toLowerCase()
    return ['', '_self'].includes(said('target', by?.formTarget)) && said('method', by?.formMethod) !== 'dialog'
  }

  // told ends a watch and says what it heard. `any` is true when something arrived at
  // all: a page may stop an event before we hear it, but not keep it from being counted.
  const told = (w, open) => {
    w.end()
    return { heard: w.heard, other: w.other, any: !silent(w) || arrived(w) || Boolean(w.sure), lost: Boolean(w.element && !w.element.isConnected), leaves: w.leaves, title: document.title, gate: open?.() }
  }
  const arrived = w => Object.entries(w.counts).some(([type, was]) => (performance.eventCounts?.get(type) ?? 0) !== was)
  const silent = w => !Object.keys(w.heard).length && !w.other

  // watchAll listens for the same, whoever receives it.
  tapin.watchAll = ({ types }) => watch({}, null, types)

  // received says who heard it; patience below zero waits for nobody. With open the gate is opened as well, where this is the only document.
  tapin.received = async ({ watch: id, patience, open }) => {
    const opened = open ? tapin.payRelease : null
    const w = watches.get(id)
    if (!w) return { gone: true, gate: opened?.() }
    if (silent(w) && patience >= 0) {
      const until = performance.now() + patience
      do await frame()
      while (silent(w) && !arrived(w) && performance.now() < until)
    }
    // A form is sent a moment later.
    for (const until = performance.now() + 100; w.sends && !w.leaves && performance.now() < until;) await new Promise(done => setTimeout(done, 5))
    return told(w, opened)
  }

  // dragging tells whether the browser carries the element by now: it began to,
  // and the page let it.
  tapin.dragging = ({ watch: id }) => {
    const { drag } = watches.get(id) ?? {}
    return Boolean(drag && !drag.defaultPrevented)
  }

  // restless tells whether the element is drawn anew all the time, also when
  // nobody touches it.
  tapin.restless = async ({ locator, within }) => {
    const seen = new Set()
    await repeat(within, () => {
      const el = tapin.best(locator)?.el
      if (el) seen.add(el)
      return { done: seen.size > 2 }
    })
    return seen.size > 2
  }

  // press is the click that needs no mouse. It arrives for certain, and is not
  // counted by the browser: whoever listens is told.
  tapin.press = ({ id, watch: by }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { ok: false }
    const w = watches.get(by)
    if (w) w.sure = true
    if (el.click) el.click()
    else el.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, composed: true, view: window }))
    return { ok: true }
  }

  // complete is the click alone on what answers to the description now.
  tapin.complete = ({ locator }) => {
    const el = tapin.best(locator)?.el
    if (!el || disabled(el) || !tapin.visible(tapin.surface(el))) return false
    if (el.click) el.click()
    else el.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, composed: true, view: window }))
    return true
  }

  // focus puts the keyboard there, if the element takes it.
  tapin.focus = ({ id }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return { ok: false }
    el.focus({ preventScroll: true })
    return { ok: el.matches(':focus') }
  }

  tapin.watchKept = ({ id, types }) => {
    const el = tapin.kept(id)
    return watch({}, el && { el, aim: el }, types)
  }

  const scrolls = (el, down) => {
    const style = getComputedStyle(el)
    const room = down ? el.scrollHeight - el.clientHeight : el.scrollWidth - el.clientWidth
    return room > 0 && /auto|scroll|overlay/.test(down ? style.overflowY : style.overflowX)
  }

  // scroller is what a wheel over the element, or over the page, would move. Many
  // pages scroll a box of their own: then it is the one in the middle.
  const scroller = (el, down) => {
    const page = document.scrollingElement ?? document.documentElement
    const room = down ? page.scrollHeight - innerHeight : page.scrollWidth - innerWidth
    if (!el && room > 0 && !/hidden|clip/.test(getComputedStyle(document.documentElement)[down ? 'overflowY' : 'overflowX'])) return page
    return up(el ?? tapin.deepest(innerWidth / 2, innerHeight / 2), n => n !== page && scrolls(n, down)) ?? page
  }

  // scroll moves a page's worth unless told how far, and says how far it went.
  tapin.scroll = async ({ id, direction, amount }) => {
    const el = id ? tapin.kept(id) : null
    if (id && !el?.isConnected) return { moved: 0, missing: true }
    if (el && !direction) {
      bring(el, 0)
      await frame()
      return { moved: 0 }
    }
    const down = direction !== 'left' && direction !== 'right'
    const box = scroller(el, down)
    const pageful = Math.round(.85 * (box === document.scrollingElement ? down ? innerHeight : innerWidth : down ? box.clientHeight : box.clientWidth))
    const was = down ? box.scrollTop : box.scrollLeft
    const to = { behavior: 'instant' }
    const by = (amount || pageful) * (direction === 'up' || direction === 'left' ? -1 : 1)
    if (direction === 'top' || direction === 'bottom') box.scrollTo({ ...to, top: direction === 'top' ? 0 : box.scrollHeight })
    else box.scrollBy({ ...to, [down ? 'top' : 'left']: by })
    await frame()
    return { moved: (down ? box.scrollTop : box.scrollLeft) - was }
  }
})(globalThis.tapin ??= {})
