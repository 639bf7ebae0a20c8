package page_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// keepable are values that a database can keep, each with what must be true of it
// after the trip, as an expression over v.
var keepable = map[string]struct{ make, check string }{
	"a date":                    {`new Date(86400001)`, `v instanceof Date && +v === 86400001`},
	"no date":                   {`new Date(NaN)`, `v instanceof Date && Number.isNaN(+v)`},
	"an expression":             {`/a\/b[☃]/giu`, `v instanceof RegExp && v.source === 'a\\/b[☃]' && v.flags === 'giu'`},
	"a map":                     {`new Map([[{k: 1}, new Map([['x', 1]])], [NaN, 2]])`, `v instanceof Map && [...v][0][0].k === 1 && [...v][0][1].get('x') === 1 && v.get(NaN) === 2`},
	"a set":                     {`new Set([1, 'a', new Date(1)])`, `v instanceof Set && [...v].length === 3 && +[...v][2] === 1`},
	"a big number":              {`2n ** 70n`, `v === 2n ** 70n`},
	"a negative big number":     {`-5n`, `v === -5n`},
	"undefined":                 {`undefined`, `v === undefined`},
	"null":                      {`null`, `v === null`},
	"no number":                 {`NaN`, `Number.isNaN(v)`},
	"infinities":                {`[Infinity, -Infinity]`, `v[0] === Infinity && v[1] === -Infinity`},
	"negative zero":             {`-0`, `Object.is(v, -0)`},
	"fractions":                 {`[0.1 + 0.2, 5e-324, 1.7976931348623157e308]`, `v[0] === 0.1 + 0.2 && v[1] === 5e-324 && v[2] === 1.7976931348623157e308`},
	"a text with everything":    {`'\u0000\u2028"\\\n☃🎉'`, `v === '\u0000\u2028"\\\n☃🎉'`},
	"half a surrogate pair":     {`'a\ud83dz'`, `v === 'a\ud83dz'`},
	"boxed values":              {`[new Number(-0), new String('s'), new Boolean(false), Object(1n)]`, `Object.is(v[0].valueOf(), -0) && typeof v[1] === 'object' && v[1] == 's' && typeof v[2] === 'object' && v[2] == false && typeof v[3] === 'object' && v[3] == 1n`},
	"an array with holes":       {`(() => { const a = [1,,3]; a.length = 9; return a })()`, `v.length === 9 && !(1 in v) && v[2] === 3 && !(8 in v)`},
	"an array with names":       {`Object.assign([1, 2], {name: 'n'})`, `v.length === 2 && v.name === 'n' && v[1] === 2`},
	"an empty array":            {`[[], {}]`, `Array.isArray(v[0]) && v[0].length === 0 && Object.keys(v[1]).length === 0`},
	"names that mean something": {`JSON.parse('{"__proto__": {"x": 1}, "constructor": 2, "r": 0, "o": [], "": 3}')`, `Object.hasOwn(v, '__proto__') && v.__proto__.x === 1 && v.constructor === 2 && v.r === 0 && v[''] === 3`},
	"names in their order":      {`({b: 1, a: 2, 1: 3})`, `Object.keys(v).join() === '1,b,a'`},
	"a cycle":                   {`(() => { const o = {list: []}; o.self = o; o.list.push(o); return o })()`, `v.self === v && v.list[0] === v`},
	"a shared part":             {`(() => { const d = new Date(3), m = new Map(); m.set('m', m); return [d, {d}, m, m] })()`, `v[0] === v[1].d && v[2] === v[3] && v[2].get('m') === v[2]`},
	"a set in itself":           {`(() => { const s = new Set(); s.add(s); return s })()`, `v.has(v)`},
	"a buffer":                  {`new Uint8Array([0, 255, 7]).buffer`, `v instanceof ArrayBuffer && [...new Uint8Array(v)].join() === '0,255,7'`},
	"a buffer that may grow":    {`new ArrayBuffer(2, {maxByteLength: 9})`, `v.byteLength === 2 && v.maxByteLength === 9`},
	"views of one buffer":       {`(() => { const b = new ArrayBuffer(16); return [b, new Uint8Array(b, 4, 4), new DataView(b, 8, 2)] })()`, `v[1].buffer === v[0] && v[1].byteOffset === 4 && v[1].length === 4 && v[2].buffer === v[0] && v[2] instanceof DataView && v[2].byteLength === 2 && v[2].byteOffset === 8`},
	"every typed array": {`[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array].map(T => T.of(1, 2)).concat([BigInt64Array.of(-1n), BigUint64Array.of(1n)], globalThis.Float16Array ? [Float16Array.of(1.5)] : [])`,
		`v.map(a => a.constructor.name + a).join() === 'Int8Array1,2,Uint8Array1,2,Uint8ClampedArray1,2,Int16Array1,2,Uint16Array1,2,Int32Array1,2,Uint32Array1,2,Float32Array1,2,Float64Array1,2,BigInt64Array-1,BigUint64Array1' + (globalThis.Float16Array ? ',Float16Array1.5' : '')`},
	"a blob":       {`new Blob([new Uint8Array([0, 200]), 'x'], {type: 'image/x-test'})`, `v.constructor === Blob && v.type === 'image/x-test' && await v.arrayBuffer().then(b => [...new Uint8Array(b)].join()) === '0,200,120'`},
	"a file":       {`({f: new File(['hé'], 'näme.txt', {type: 'text/plain', lastModified: 77})})`, `v.f instanceof File && v.f.name === 'näme.txt' && v.f.lastModified === 77 && v.f.type === 'text/plain' && await v.f.text() === 'hé'`},
	"an error":     {`new RangeError('too far')`, `v instanceof RangeError && v.message === 'too far' && typeof v.stack === 'string'`},
	"a nested one": {`Array.from({length: 200}).reduce(v => [v], 'core')`, `(() => { let d = 0; while (Array.isArray(v)) { v = v[0]; d++ } return d === 200 && v === 'core' })()`},
}

const openDB = `const open = (name, version, up) => new Promise((yes, no) => { const r = indexedDB.open(name, version); r.onupgradeneeded = e => up?.(r.result, r.transaction); r.onsuccess = () => yes(r.result); r.onerror = () => no(r.error) });
const get = r => new Promise((yes, no) => { r.onsuccess = () => yes(r.result); r.onerror = () => no(r.error) });`

func TestEveryKindOfValueSurvivesTheTrip(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	a := newVisitor(t, site)
	// On localhost everything that wants a secure place can be made.
	tab := a.open(ctx, t, site.at("localhost")+"/")
	var puts, checks strings.Builder
	for name, kind := range keepable {
		fmt.Fprintf(&puts, "s.put({v: %s}, %q);\n", kind.make, name)
		fmt.Fprintf(&checks, "{ let {v} = await get(s(%q)); if (!(%s)) bad.push(%q) }\n", name, kind.check, name)
	}
	check := `(async () => { ` + openDB + ` const db = await open('values'), s = k => db.transaction('s').objectStore('s').get(k), bad = [];` + checks.String() + `db.close(); return bad.join() })()`
	tab.Eval(ctx, t, `(async () => { `+openDB+`
		(await open('values', 1, db => { const s = db.createObjectStore('s'); `+puts.String()+` })).close()
		const key = await crypto.subtle.generateKey({name: 'AES-GCM', length: 256}, false, ['encrypt'])
		const db = await open('keys', 1, db => db.createObjectStore('s')), s = db.transaction('s', 'readwrite').objectStore('s')
		s.put({key}, 'secret'); s.put('kept', 'other'); await get(s.count()); db.close()
	})()`)
	if bad := tab.Eval(ctx, t, check); bad != "" {
		t.Fatalf("the checks themselves fail for %s", bad)
	}
	st, skipped, err := a.tabs.ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	origin := site.at("localhost")
	if len(skipped) != 1 || skipped[0] != origin+": 1 of IndexedDB's records were left out: a CryptoKey cannot leave its browser" {
		t.Errorf("left out: %q", skipped)
	}
	b := newVisitor(t, site)
	if got := b.restore(ctx, t, st); got.Databases != 2 || len(got.Skipped) > 0 {
		t.Errorf("restored %+v", got)
	}
	tab = b.open(ctx, t, site.at("localhost")+"/")
	if bad := tab.Eval(ctx, t, check); bad != "" {
		t.Errorf("after the trip these differ: %s", bad)
	}
	if again := b.read(ctx, t); !cmp.Equal(st, again, revealed) {
		t.Error("the databases read differently after the trip")
	}
}

func TestTheShapeOfDatabasesSurvivesTheTrip(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	build := `(async () => { ` + openDB + `
		const db = await open('shop', 7, db => {
			const s = db.createObjectStore('byPath', {keyPath: 'a.b', autoIncrement: true})
			s.createIndex('mail', 'mail', {unique: true}); s.createIndex('tags', 'tags', {multiEntry: true}); s.createIndex('pair', ['x', 'y'])
			s.createIndex('key', 'a.b', {unique: true})
			s.put({mail: 'm1', tags: ['t', 'u'], x: 1, y: 2}); s.put({mail: 'm2', tags: ['t']})
			db.createObjectStore('counted', {autoIncrement: true}).createIndex('self', '', {unique: true})
			db.createObjectStore('fresh', {autoIncrement: true})
			db.createObjectStore('compound', {keyPath: ['p', 'q']}).put({p: 1, q: 'z'})
			const keys = db.createObjectStore('keys'); for (const k of [1, -Infinity, 1.5, new Date(9), 'text', '\ud800', new Uint8Array([1, 2]), [1, ['a', new Date(1)], new Uint8Array([3])], []]) keys.put(String(k), k)
			db.createObjectStore('empty \ud800')
		})
		const s = db.transaction('counted', 'readwrite').objectStore('counted')
		for (let i = 0; i < 9; i++) s.add({i}); s.delete(IDBKeyRange.lowerBound(3)); await get(s.count())
		db.close()
		;(await open('', 1)).close(); (await open('none', 2 ** 40)).close()
	})()`
	look := `(async () => { ` + openDB + ` const out = []
		for (const {name, version} of (await indexedDB.databases()).sort((a, b) => a.name < b.name ? -1 : 1)) {
			const db = await open(name); out.push([name, version])
			for (const n of db.objectStoreNames) {
				const s = db.transaction(n).objectStore(n)
				out.push([n, s.keyPath, s.autoIncrement, [...s.indexNames].map(i => s.index(i)).map(i => [i.name, i.keyPath, i.unique, i.multiEntry]), (await get(s.getAllKeys())).map(k => Object.prototype.toString.call(k) + JSON.stringify(k) + (k.byteLength ? [...new Uint8Array(k)] : '')), await get(s.getAll())])
				for (const i of s.indexNames) out.push(await get(db.transaction(n).objectStore(n).index(i).getAllKeys()))
			}
			db.close()
		}
		return JSON.stringify(out) })()`
	next := `(async () => { ` + openDB + ` const db = await open('shop'), tx = db.transaction(['byPath', 'counted', 'fresh'], 'readwrite'), out = []
		out.push(await get(tx.objectStore('byPath').add({}))); out.push(await get(tx.objectStore('counted').add(true))); out.push(await get(tx.objectStore('fresh').add(true)))
		tx.abort(); db.close(); return out.join() })()`
	a := newVisitor(t, site)
	tab := a.open(ctx, t, site.at("bank.test")+"/")
	tab.Eval(ctx, t, build)
	want := tab.Eval(ctx, t, look)
	st := a.read(ctx, t)
	if got := tab.Eval(ctx, t, next); got != "3,10,1" {
		t.Errorf("after being read, the generators go on with %s", got)
	}
	if again := a.read(ctx, t); !cmp.Equal(st, again, revealed) {
		t.Error("reading twice gives two states")
	}
	b := newVisitor(t, site)
	if got := b.restore(ctx, t, st); got.Databases != 3 || len(got.Skipped) > 0 {
		t.Errorf("restored %+v", got)
	}
	tab = b.open(ctx, t, site.at("bank.test")+"/")
	if got := tab.Eval(ctx, t, look); got != want {
		t.Errorf("the databases differ:\n%s\n%s", want, got)
	}
	if got := tab.Eval(ctx, t, next); got != "3,10,1" {
		t.Errorf("the generators go on with %s", got)
	}
	if again := b.read(ctx, t); !cmp.Equal(st, again, revealed) {
		t.Error("the databases read differently after the trip")
	}
}

func TestAPageThatHoldsItsDatabaseIsNotDisturbedByBeingRead(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	tab := v.open(ctx, t, site.at("bank.test")+"/")
	tab.Eval(ctx, t, `(async () => { `+openDB+` window.events = []; window.db = await open('held', 1, db => db.createObjectStore('s').put('v', 'k'))
		for (const e of ['versionchange', 'close', 'abort', 'error']) db.addEventListener(e, () => events.push(e)) })()`)
	if st := v.read(ctx, t); len(st.Origins) != 1 || !strings.Contains(string(st.Origins[0].Databases), `"held"`) {
		t.Errorf("read %d origins", len(st.Origins))
	}
	// An upgrade right after it finds no connection of ours in its way.
	got := tab.Eval(ctx, t, `new Promise(yes => { db.close(); const r = indexedDB.open('held', 2); r.onblocked = () => yes('blocked'); r.onsuccess = () => yes(events.join() + r.result.version) })`)
	if got != "2" {
		t.Errorf("the page saw %q", got)
	}
	// Nor does it see anything of ours.
	if got := tab.Eval(ctx, t, `typeof tapin + Object.keys(window).filter(k => /tapin/i.test(k))`); got != "undefined" {
		t.Errorf("the page sees %q", got)
	}
}

func TestWhatIsTooLargeIsLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	tab := v.open(ctx, t, site.at("bank.test")+"/")
	tab.Eval(ctx, t, `(async () => { `+openDB+` for (let i = 0; i < 10001; i++) localStorage.setItem('k' + i, '')
		;(await open('cache', 1, db => db.createObjectStore('s').put(new Blob([new Uint8Array(45 << 20)]), 1))).close()
		;(await open('small', 1, db => db.createObjectStore('s').put('v', 1))).close() })()`)
	st, skipped, err := v.tabs.ReadState(ctx)
	origin := site.at("bank.test")
	if want := []string{origin + ": 1 databases were left out: it is too large", origin + ": localStorage was left out: it is too large"}; err != nil || !cmp.Equal(skipped, want) {
		t.Errorf("skipped %q, %v", skipped, err)
	}
	if len(st.Origins) != 1 || st.Origins[0].Local != nil || !strings.HasPrefix(string(st.Origins[0].Databases), `[{"name":"small"`) {
		t.Errorf("the rest was not read")
	}
}

func TestTextsOfPagesTravelUnchanged(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newBank(t, false, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>texts</title>`)
	}})
	v := newVisitor(t, site)
	want := []string{"", "\x00", "späß", "🎉", "\u2028", `"\`, "lone \xed\xa0\xbd half", "\xed\xb8\x80", "\ufffd", "__proto__", "length", "key"}
	st := browser.State{Cookies: []browser.Cookie{}}
	var items, session []browser.Item
	for i, text := range want {
		items = append(items, browser.Item{Key: secret.New(text), Value: secret.New(fmt.Sprint(i) + text)})
		if !utf8.ValidString(text) {
			text = "" // the browser itself keeps the keys of sessionStorage as UTF-8
		}
		session = append(session, browser.Item{Key: secret.New(fmt.Sprint(i) + text), Value: items[i].Value})
	}
	st.Origins = []browser.OriginState{{Origin: site.at("bank.test"), Local: items, Session: session, Databases: []byte{}}}
	if got := v.restore(ctx, t, st); got.Keys != 2*len(want) {
		t.Fatalf("restored %+v", got)
	}
	tab := v.open(ctx, t, site.at("bank.test")+"/")
	if got := tab.Eval(ctx, t, `localStorage.getItem('lone \ud83d half').replace('\ud83d', '?') + localStorage.getItem('\ude00').charCodeAt(1).toString(16) + sessionStorage.getItem('10length')`); got != "6lone ? halfde0010length" {
		t.Errorf("the page reads %q", got)
	}
	for _, list := range [][]browser.Item{items, session} {
		slices.SortFunc(list, func(a, b browser.Item) int { return strings.Compare(a.Key.Reveal(), b.Key.Reveal()) })
	}
	if got := v.read(ctx, t); !cmp.Equal(got, st, revealed) {
		t.Errorf("the texts read differently: %s", cmp.Diff(st, got, revealed))
	}
}

func TestUTF16IsKeptWhateverItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOf(rapid.OneOf(rapid.Uint16(), rapid.Uint16Range(0xD800, 0xDFFF))).Draw(t, "units")
		if got := page.UnitsOf(page.TextOf(units)); !cmp.Equal(got, units) && len(units) > 0 {
			t.Fatalf("%x became %x", units, got)
		}
	})
}

func FuzzTextOnItsWayIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`"a"`))
	f.Add([]byte(`{"w":"PdgA"}`))
	f.Add([]byte(` {"w":"!"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := page.DecodeText(raw)
		if err != nil {
			return
		}
		out, err := page.EncodeText(text)
		if err != nil || !json.Valid(out) {
			t.Fatalf("%q was read but is written as %q, %v", raw, out, err)
		}
		if again, err := page.DecodeText(out); err != nil || again != text {
			t.Fatalf("%q became %q, %v", text, again, err)
		}
	})
}

func TestHostileDatabasesAreLeftOutOneByOne(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	row := func(value string) string {
		return `{"name":"N","version":1,"stores":[{"name":"s","keyPath":null,"autoIncrement":false,"indexes":[],"rows":[["k",` + value + `]]}]}`
	}
	bad := []string{
		`null`, `1`, `"text"`, `[]`, `{}`, `{"name":"N","version":0,"stores":[]}`, `{"name":"N","version":-1,"stores":[]}`, `{"name":"N","version":1e300,"stores":[]}`,
		`{"name":"N","version":1}`, `{"name":"N","version":1,"stores":[{}]}`, `{"name":{"w":"!"},"version":1,"stores":[]}`,
		`{"name":"N","version":1,"stores":[{"name":"s","keyPath":"not a path","autoIncrement":false,"indexes":[],"rows":[]}]}`,
		`{"name":"N","version":1,"stores":[{"name":"s","keyPath":null,"autoIncrement":false,"indexes":[],"rows":[]},{"name":"s","keyPath":null,"autoIncrement":false,"indexes":[],"rows":[]}]}`,
		`{"name":"N","version":1,"stores":[{"name":"s","keyPath":null,"autoIncrement":false,"indexes":[{"name":"i","keyPath":"x","unique":true,"multiEntry":false}],"rows":[["a",{"o":["x",1]}],["b",{"o":["x",1]}]]}]}`,
		row(`{"r":9}`), row(`{"r":"length"}`), row(`{"zz":1}`), row(`{"toString":1}`), row(`{"v":["constructor",{"b":[""]},0,0]}`), row(`{"v":["Int8Array",{"b":[""]},5,5]}`),
		row(`{"b":["AAAA",1e18]}`), row(`{"b":["not base64"]}`), row(`{"x":["(","g"]}`), row(`{"x":["a","zz"]}`), row(`{"i":"1e5"}`), row(`{"a":[-1]}`),
		row(strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000)),
	}
	for i := range bad {
		bad[i] = strings.ReplaceAll(bad[i], `"N"`, fmt.Sprintf(`"d%d"`, i))
	}
	st := browser.State{Origins: []browser.OriginState{{Origin: site.at("bank.test"), Databases: []byte("[" + strings.Join(append(bad, strings.ReplaceAll(row("1"), `"N"`, `"good"`)), ",") + "]")}}}
	got := v.restore(ctx, t, st)
	left := 0
	for _, s := range got.Skipped {
		var n int
		if _, err := fmt.Sscanf(strings.TrimPrefix(s, site.at("bank.test")+": "), "%d databases were left out", &n); err != nil {
			t.Errorf("told %q", s)
		}
		left += n
	}
	names := v.open(ctx, t, site.at("bank.test")+"/").Eval(ctx, t, "indexedDB.databases().then(l => l.map(d => d.name).sort().join())")
	if got.Databases != 1 || left != len(bad) || names != "good" {
		t.Errorf("restored %+v; there is %q", got, names)
	}
}
