// What a document's origin keeps in the browser, out and in again. No error
// says more than a word from here: the browser's own may quote what is stored.
(tapin => {
  if (tapin.stored) return

  const { pack, settle, unpack, text, untext, Uncarried } = tapin.clone
  const batch = 200 // records a request

  // place says whose storage this document sees.
  tapin.place = () => ({ origin: self.origin, ancestors: [...location.ancestorOrigins ?? []] })

  const done = request => new Promise((yes, no) => {
    request.onsuccess = () => yes(request.result)
    request.onerror = e => { e.preventDefault(); no(request.error) }
  })
  const why = e => e instanceof DOMException ? e.name : e?.word ?? 'invalid'
  const refuse = word => { throw Object.assign(new Error(word), { word }) }

  // inTime gives up on what takes too long, and tells it so.
  const inTime = (ms, fn) => {
    const limit = { over: false, left: [] }
    let timer
    const late = new Promise((_, no) => {
      timer = setTimeout(() => { limit.over = true; limit.left.forEach(f => f()); no(Object.assign(new Error(), { word: 'slow' })) }, ms)
    })
    return Promise.race([fn(limit), late]).finally(() => clearTimeout(timer))
  }

  // Web storage.

  const area = name => { try { return self[name] } catch { return null } } // a sandboxed document has none

  const items = (store, { maxKeys, maxChars }) => {
    if (store.length > maxKeys) refuse('large')
    const out = []
    let size = 0
    for (let i = 0; i < store.length; i++) {
      const key = store.key(i), value = store.getItem(key)
      if ((size += key.length + value.length) > maxChars) refuse('large')
      out.push([text(key), text(value)])
    }
    return out
  }

  // replace puts entries in the place of all others, and looks whether they are
  // there, before any script of the page can run again. If not, nothing changed.
  // Only what differs is touched: other pages hear of every change.
  const replace = (store, entries) => {
    const before = new Map(Array.from({ length: store.length }, (_, i) => store.key(i)).map(k => [k, store.getItem(k)]))
    const wanted = new Map(entries.map(([k, v]) => [untext(k), untext(v)]))
    const become = map => {
      for (const k of Array.from({ length: store.length }, (_, i) => store.key(i))) if (!map.has(k)) store.removeItem(k)
      for (const [k, v] of map) if (store.getItem(k) !== v) store.setItem(k, v)
    }
    try {
      become(wanted)
      if (store.length !== wanted.size || [...wanted].some(([k, v]) => store.getItem(k) !== v)) refuse('changed')
    } catch (e) {
      become(before)
      throw e
    }
  }

  // Databases.

  const open = (name, limit) => new Promise((yes, no) => {
    const request = indexedDB.open(name)
    request.onupgradeneeded = () => request.transaction.abort() // it went away; it is not ours to make
    request.onerror = e => { e.preventDefault(); no(request.error) }
    request.onsuccess = () => {
      const db = request.result
      if (limit.over) return db.close()
      db.onversionchange = () => db.close() // the page comes first
      limit.left.push(() => db.close())
      yes(db)
    }
  })

  const readDatabase = async (name, budget, limit, uncarried) => {
    const db = await open(name, limit)
    try {
      const later = [], stores = []
      const names = [...db.objectStoreNames]
      const tx = names.length ? db.transaction(names) : null
      for (const each of names) stores.push(await readStore(tx.objectStore(each), budget, later, limit, uncarried))
      for (const store of stores) if (store.autoIncrement) store.next = await nextKey(db, store)
      await settle(later)
      const shown = stores.map(({ rows, name, ...rest }) =>
        JSON.stringify({ name: text(name), ...rest }).slice(0, -1) + ',"rows":[' + rows.map(r => typeof r === 'string' ? r : JSON.stringify(r)).join(',') + ']}')
      return JSON.stringify({ name: text(name), version: db.version }).slice(0, -1) + ',"stores":[' + shown.join(',') + ']}'
    } finally {
      db.close()
    }
  }

  const readStore = async (store, budget, later, limit, uncarried) => {
    const { name, keyPath, autoIncrement } = store
    const indexes = [...store.indexNames].map(n => store.index(n)).map(i => ({ name: text(i.name), keyPath: i.keyPath, unique: i.unique, multiEntry: i.multiEntry }))
    const rows = []
    let range
    for (;;) {
      const [keys, values] = await Promise.all([done(store.getAllKeys(range, batch)), done(store.getAll(range, batch))])
      if (limit.over) refuse('slow')
      keys.forEach((key, i) => {
        const mine = []
        try {
          const packed = pack(keyPath === null ? [key, values[i]] : [values[i]], mine)
          const row = mine.length ? packed : JSON.stringify(packed)
          budget.chars -= (mine.length ? JSON.stringify(packed) : row).length + mine.reduce((n, { blob }) => n + blob.size * 4 / 3, 0)
          rows.push(row)
          later.push(...mine)
        } catch (e) {
          // Half a record would be worse than none; one too deep to walk is too deep to carry.
          const kind = e instanceof Uncarried ? e.kind : 'deep'
          uncarried[kind] = (uncarried[kind] ?? 0) + 1
        }
        if (budget.chars < 0 || --budget.rows < 0) refuse('large')
      })
      if (keys.length < batch) return { name, keyPath, autoIncrement, indexes, rows }
      range = IDBKeyRange.lowerBound(keys.at(-1), true)
    }
  }

  // nextKey is what a generator would give next. Only using it tells, so it is
  // used, and the use undone.
  const nextKey = async (db, { name, keyPath }) => {
    const tx = db.transaction(name, 'readwrite')
    try {
      return await done(tx.objectStore(name).add(keyPath === null ? true : {}))
    } catch {
      return null // used up
    } finally {
      try { tx.abort() } catch { /* the failure ended it */ }
    }
  }

  const remove = name => new Promise((yes, no) => {
    const request = indexedDB.deleteDatabase(name)
    request.onsuccess = yes
    request.onerror = () => no(request.error)
    request.onblocked = () => no(Object.assign(new Error(), { word: 'in use' }))
  })

  // create makes a database with everything in it, or none.
  const create = spec => new Promise((yes, no) => {
    const request = indexedDB.open(untext(spec.name), spec.version)
    let failed = null
    request.onblocked = () => no(Object.assign(new Error(), { word: 'in use' }))
    request.onupgradeneeded = e => {
      try {
        if (e.oldVersion !== 0) refuse('changed')
        for (const store of spec.stores) build(request.result, store)
      } catch (err) {
        failed = err
        request.transaction.abort()
      }
    }
    request.onerror = e => { e.preventDefault(); no(failed ?? request.error) }
    request.onsuccess = () => { request.result.close(); yes() }
  })

  const build = (db, { name, keyPath, autoIncrement, next, indexes, rows }) => {
    const store = db.createObjectStore(untext(name), { keyPath, autoIncrement })
    for (const i of indexes) store.createIndex(untext(i.name), i.keyPath, { unique: i.unique, multiEntry: i.multiEntry })
    for (const row of rows) {
      const values = unpack(row)
      if (keyPath === null) store.put(values[1], values[0])
      else store.put(values[0])
    }
    if (!autoIncrement || !(next > 1)) return
    // A key given by hand moves the generator past it.
    store.getKey(next - 1).onsuccess = e => {
      if (e.target.result !== undefined) return
      if (keyPath === null) store.add(true, next - 1)
      else store.add(keyPath.split('.').reduceRight((inner, part) => ({ [part]: inner }), next - 1))
      store.delete(next - 1)
    }
  }

  // list is what databases there are, in one order.
  const list = async () => (await indexedDB.databases()).sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0)

  // databaseNames is what there is to remove.
  tapin.databaseNames = async () => (await list()).map(({ name }) => text(name))

  // stored reads. Parts that cannot be read are null; skipped counts what was
  // left out, by the word for why.
  tapin.stored = async ({ session, databases, maxKeys, maxChars, maxRows, within }) => {
    const out = { local: null, session: null, databases: null, skipped: {} }
    const skip = (part, word, n = 1) => { out.skipped[part + ' ' + word] = (out.skipped[part + ' ' + word] ?? 0) + n }
    const read = (part, name) => {
      try {
        const store = area(name)
        if (store) out[part] = items(store, { maxKeys, maxChars })
        else skip(name, 'closed')
      } catch (e) { skip(name, why(e)) }
    }
    read('local', 'localStorage')
    if (session) read('session', 'sessionStorage')
    if (!databases) return out
    const texts = []
    try {
      await inTime(within, async limit => {
        for (const { name } of await list()) {
          const uncarried = {}, budget = { chars: maxChars - texts.reduce((n, t) => n + t.length, 0), rows: maxRows }
          try {
            const read = await readDatabase(name, budget, limit, uncarried)
            if (limit.over) return
            texts.push(read)
            for (const kind in uncarried) skip('record', kind, uncarried[kind])
          } catch (e) {
            if (limit.over) return
            skip('database', why(e))
          }
        }
      })
      out.databases = texts.length ? '[' + texts.join(',') + ']' : ''
    } catch (e) {
      skip('databases', why(e))
    }
    return out
  }

  // store puts parts in the place of what is there; a part that is null is left
  // alone. Strictly, the first failure ends it; else a bad database costs itself.
  tapin.store = async ({ local, session, databases, strict, within }) => {
    const out = { keys: 0, databases: 0, failed: '', skipped: {} }
    try {
      for (const [name, entries] of [['localStorage', local], ['sessionStorage', session]]) {
        if (!entries) continue
        replace(area(name) ?? refuse('closed'), entries)
        out.keys += entries.length
      }
      if (databases === null) return out
      await inTime(within, async limit => {
        const specs = databases ? JSON.parse(databases) : []
        for (const each of await list()) await remove(each.name)
        for (const spec of specs) {
          if (limit.over) return
          try {
            await create(spec)
            out.databases++
          } catch (e) {
            if (strict) throw e
            out.skipped['database ' + why(e)] = (out.skipped['database ' + why(e)] ?? 0) + 1
          }
        }
      })
    } catch (e) {
      out.failed = why(e)
    }
    return out
  }
})(globalThis.tapin ??= {})
