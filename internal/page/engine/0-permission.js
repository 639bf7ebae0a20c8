// A browser that shows no prompt refuses a page's wish for a permission without
// a word. The state of the permission changes with it, and that can be heard.
(tapin => {
  if (tapin.refusal) return
  const refusals = []
  let waiting = null

  const note = name => {
    refusals.push({origin: self.origin, name})
    waiting?.(refusals.shift())
    waiting = null
  }

  // refusal is the next permission that the page did not get. Only the last one
  // who asked is told.
  tapin.refusal = () => refusals.length ? refusals.shift() : new Promise(told => { waiting = told })

  const watch = async name => {
    const status = await navigator.permissions.query({name})
    tapin.watched.push(status) // what nobody holds is not told of changes
    if (status.state === 'denied') note(name)
    let before = status.state
    status.onchange = () => {
      if (before !== 'denied' && status.state === 'denied') note(name)
      before = status.state
    }
  }

  tapin.watched = []
  if (!isSecureContext || self !== top || self.origin === 'null' || !navigator.permissions) return
  for (const name of ['geolocation', 'notifications', 'camera', 'microphone', 'clipboard-read']) {
    watch(name).catch(() => {}) // a browser need not know them all
  }
})(globalThis.tapin ??= {})
