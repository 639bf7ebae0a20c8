// Values as databases keep them, as text and back. JSON knows too few kinds, so
// every object but a plain array carries a tag:
//   u undefined · n a number JSON lacks · i BigInt · w a text that is no valid UTF-16
//   o object · a array with holes or names · m Map · t Set · d Date · x RegExp · e Error · p boxed primitive
//   b ArrayBuffer · v view of one · B Blob · F File · r the nth object of the same value
// Objects are numbered as they are met, which is how cycles and shared parts survive.
(tapin => {
  if (tapin.clone) return

  // Without a prototype: what is looked up in them comes from outside.
  const views = Object.assign(Object.create(null), Object.fromEntries(['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array',
    'Float16Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array', 'DataView'].map(name => [name, globalThis[name]])))
  const errors = Object.assign(Object.create(null), { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError })

  // Uncarried is thrown for what cannot leave its browser, such as a CryptoKey.
  class Uncarried { constructor(kind) { this.kind = kind } }

  const toBase64 = bytes => {
    if (bytes.toBase64) return bytes.toBase64()
    let text = ''
    for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode.apply(null, bytes.subarray(i, i + 0x8000))
    return btoa(text)
  }
  const fromBase64 = text => Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), c => c.charCodeAt(0))

  // text is a string that JSON, and whoever reads it, can keep as it is.
  const text = s => s.isWellFormed() ? s : { w: toBase64(new Uint8Array(Uint16Array.from({ length: s.length }, (_, i) => s.charCodeAt(i)).buffer)) }
  const untext = s => {
    if (typeof s === 'string') return s
    const units = new Uint16Array(fromBase64(s.w).buffer)
    let out = ''
    for (let i = 0; i < units.length; i += 0x8000) out += String.fromCharCode.apply(null, units.subarray(i, i + 0x8000))
    return out
  }
  // pack makes JSON of a value. What only comes by waiting, the bytes of Blobs,
  // is put where later says.
  const pack = (value, later) => {
    const met = new Map()
    const wait = (blob, into) => { later.push({ blob, into }); return into }
    const pairs = (v, keys) => keys.flatMap(k => [text(k), put(v[k])])
    const put = v => {
      switch (typeof v) {
        case 'string': return text(v)
        case 'boolean': return v
        case 'number': return Object.is(v, -0) ? { n: '-0' } : Number.isFinite(v) ? v : { n: String(v) }
        case 'bigint': return { i: String(v) }
        case 'undefined': return { u: 1 }
        case 'object': break
        default: throw new Uncarried(typeof v)
      }
      if (v === null) return null
      if (met.has(v)) return { r: met.get(v) }
      met.set(v, met.size)
      const kind = Object.prototype.toString.call(v).slice(8, -1)
      if (Array.isArray(v)) {
        const keys = Object.keys(v)
        if (keys.length === v.length && keys.every((k, i) => k === String(i))) return v.map(put)
        return { a: [v.length, ...pairs(v, keys)] }
      }
      if (views[kind] && ArrayBuffer.isView(v)) return { v: [kind, put(v.buffer), v.byteOffset, kind === 'DataView' ? v.byteLength : v.length] }
      switch (kind) {
        case 'Map': return { m: [...v].flatMap(([k, each]) => [put(k), put(each)]) }
        case 'Set': return { t: [...v].map(put) }
        case 'Date': return { d: Number.isNaN(+v) ? null : +v }
        case 'RegExp': return { x: [text(v.source), v.flags] }
        case 'Boolean': case 'Number': case 'String': case 'BigInt': return { p: put(v.valueOf()) }
        case 'Error': return { e: [text(v.name), ...['message', 'stack', 'cause'].map(k => Object.hasOwn(v, k) ? put(v[k]) : { u: 1 })] }
        case 'ArrayBuffer': return { b: [toBase64(new Uint8Array(v)), ...v.resizable ? [v.maxByteLength] : []] }
        case 'Blob': return wait(v, { B: [text(v.type), ''] })
        case 'File': return wait(v, { F: [text(v.type), '', text(v.name), v.lastModified] })
        case 'Object': if (Object.getPrototypeOf(v) === Object.prototype) return { o: pairs(v, Object.keys(v)) }
      }
      throw new Uncarried(kind)
    }
    return put(value)
  }

  // settle waits for the bytes that pack left out.
  const settle = async later => {
    for (const { blob, into } of later) (into.B ?? into.F)[1] = toBase64(new Uint8Array(await blob.arrayBuffer()))
  }

  const unpack = packed => {
    const met = []
    const fill = (into, pairs) => { // defined, not set: a name may be __proto__
      for (let i = 0; i < pairs.length; i += 2) {
        Object.defineProperty(into, untext(pairs[i]), { value: take(pairs[i + 1]), writable: true, enumerable: true, configurable: true })
      }
      return into
    }
    const keep = v => { met.push(v); return v }
    const take = p => {
      if (p === null || typeof p !== 'object') return p
      if (Array.isArray(p)) {
        const out = keep([])
        for (const each of p) out.push(take(each))
        return out
      }
      const [tag] = Object.keys(p), v = p[tag]
      switch (tag) {
        case 'u': return undefined
        case 'n': return Number(v)
        case 'i': return BigInt(v)
        case 'w': return untext(p)
        case 'r': if (!Number.isInteger(v) || v < 0 || v >= met.length) throw new Error('unknown reference'); return met[v]
        case 'o': return fill(keep({}), v)
        case 'a': { const out = keep([]); out.length = v[0]; return fill(out, v.slice(1)) }
        case 'm': { const out = keep(new Map()); for (let i = 0; i < v.length; i += 2) { const k = take(v[i]); out.set(k, take(v[i + 1])) } return out }
        case 't': { const out = keep(new Set()); for (const each of v) out.add(take(each)); return out }
        case 'd': return keep(new Date(v ?? NaN))
        case 'x': return keep(new RegExp(untext(v[0]), v[1]))
        case 'p': { const at = met.length; keep(null); return met[at] = Object(take(v)) }
        case 'e': return error(keep(new (errors[untext(v[0])] ?? Error)()), v)
        case 'b': return keep(buffer(v))
        case 'v': { const at = met.length; keep(null); return met[at] = new views[v[0]](take(v[1]), v[2], v[3]) }
        case 'B': return keep(new Blob([fromBase64(v[1])], { type: untext(v[0]) }))
        case 'F': return keep(new File([fromBase64(v[1])], untext(v[2]), { type: untext(v[0]), lastModified: v[3] }))
      }
      throw new Error('unknown tag')
    }
    const error = (e, v) => {
      ['message', 'stack', 'cause'].forEach((k, i) => {
        const value = take(v[i + 1])
        if (value === undefined) delete e[k]
        else Object.defineProperty(e, k, { value, writable: true, configurable: true })
      })
      return e
    }
    const buffer = ([bytes, max]) => {
      const from = fromBase64(bytes)
      if (max === undefined) return from.buffer
      const out = new ArrayBuffer(from.length, { maxByteLength: max })
      new Uint8Array(out).set(from)
      return out
    }
    return take(packed)
  }

  tapin.clone = { pack, settle, unpack, text, untext, Uncarried }
})(globalThis.tapin ??= {})
