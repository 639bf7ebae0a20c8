// What pictures need to know: where things are on the glass, and what must not
// be shown on it. Nothing is laid over the page, which could see it.
(tapin => {
  if (tapin.glass) return

  // secrets are the boxes of fields that no picture should show, in this document's viewport.
  tapin.secretBoxes = () => tapin.roots().flatMap(root => [...root.querySelectorAll('input,textarea,[contenteditable]')])
    .filter(el => el.type !== 'hidden' && tapin.secret(el)).flatMap(tapin.boxes).map(boxOf)

  const boxOf = r => ({ x: r.left, y: r.top, width: r.width, height: r.height })

  // keptBox is the box of an element and of everything that sticks out of it to be seen.
  tapin.keptBox = ({ id }) => {
    const el = tapin.kept(id)
    if (!el?.isConnected) return null
    const all = tapin.boxes(el)
    if (!all.length) return null
    const left = Math.min(...all.map(r => r.left)), top = Math.min(...all.map(r => r.top))
    return { x: left, y: top, width: Math.max(...all.map(r => r.right)) - left, height: Math.max(...all.map(r => r.bottom)) - top }
  }

  // glass is what the window shows of the page.
  tapin.glass = () => {
    const v = visualViewport, zoomed = v.scale !== 1
    return {
      ratio: devicePixelRatio, scale: v.scale, scrollX, scrollY, x: v.pageLeft, y: v.pageTop,
      width: zoomed ? v.width : innerWidth, height: zoomed ? v.height : innerHeight,
    }
  }

  // painted ends with the next frame, or soon where none is painted.
  const painted = () => new Promise(done => {
    const late = setTimeout(done, 100)
    requestAnimationFrame(() => { clearTimeout(late); done() })
  })

  // bringKept scrolls an element into view, unless all of it is.
  tapin.bringKept = async ({ id }) => {
    const el = tapin.kept(id), r = el?.getBoundingClientRect()
    if (!r) return
    const inside = r.left >= 0 && r.top >= 0 && r.right <= innerWidth && r.bottom <= innerHeight
    if (inside && window === window.top) return
    el.scrollIntoView({ block: r.height > innerHeight ? 'start' : 'center', inline: 'nearest', behavior: 'instant' })
    await painted()
  }

  // unroll goes down the page once, as a person would, so that what loads only
  // when it is looked at does; then back to where it was.
  tapin.unroll = async ({ most }) => {
    const e = document.scrollingElement
    if (!e || e.scrollHeight <= innerHeight + 1) return
    const at = [scrollX, scrollY], end = Math.min(e.scrollHeight, most / devicePixelRatio), until = performance.now() + 3000
    for (let y = innerHeight; y < end && performance.now() < until; y += innerHeight) {
      scrollTo({ left: at[0], top: y, behavior: 'instant' })
      await painted()
    }
    while ([...document.images].some(i => i.loading === 'lazy' && !i.complete) && performance.now() < until) await painted()
    scrollTo({ left: at[0], top: at[1], behavior: 'instant' })
    await painted()
  }

  // encode turns a PNG into another format, on a canvas the page does not have.
  tapin.encode = async ({ png, type, quality }) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), c => c.charCodeAt(0))], { type: 'image/png' }))
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height)
    canvas.getContext('2d').drawImage(bitmap, 0, 0)
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type, quality })).arrayBuffer())
    let out = ''
    for (let i = 0; i < bytes.length; i += 0x8000) out += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
    return btoa(out)
  }
})(globalThis.tapin ??= {})
