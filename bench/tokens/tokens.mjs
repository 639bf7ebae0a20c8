// Tokens of a page's snapshot, tapin beside @playwright/mcp, each as its host
// gets it, counted with OpenAI's o200k_base (gpt-tokenizer). Every element that
// can be acted on and that one of them names must be there for the other.
//   node tokens.mjs PROGRAM CHROMIUM
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pages } from './pages.mjs'

const [program, chromium] = process.argv.slice(2)
const target = 0.6
const site = createServer((req, res) => res.setHeader('content-type', 'text/html; charset=utf-8').end(pages[req.url.slice(1)] ?? ''))
await new Promise(done => site.listen(0, '127.0.0.1', done))
const host = `127.0.0.1:${site.address().port}`
const home = mkdtempSync(join(tmpdir(), 'tapin'))
writeFileSync(join(home, 'config.yaml'), `listen:\n  control: 127.0.0.1:0\n  public: 127.0.0.1:0\negress:\n  allow: ["${host}"]\n`)

async function start(command, args) {
  const client = new Client({ name: 'bench', version: '1' })
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore', env: process.env }))
  return client
}
const text = result => result.content.filter(c => c.type === 'text').map(c => c.text).join('\n')
const whole = async (client, url, args) => {
  await client.callTool({ name: 'browser_navigate', arguments: { url } })
  return text(await client.callTool({ name: 'browser_snapshot', arguments: args }))
}

// What can be acted on, by name. Names are compared without what is only there
// to be seen once: space and case.
const acting = /^(button|link|textbox|searchbox|spinbutton|combobox|checkbox|radio|switch|tab|slider|option|menuitem)$/
const plain = s => s.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim()
const theirs = snapshot => [...snapshot.matchAll(/- (\w+) "((?:[^"\\]|\\.)*)"[^\n]*\[ref=/g)].filter(m => acting.test(m[1]) && m[1] !== 'option').map(m => plain(m[2]))
const ours = snapshot => [...snapshot.matchAll(/\[(?:f\d+)?e\d+\] ([a-z]+)[^:\n]*(?:: ([^\n]*?))?(?= \| |\n|$| \[e)/g)].filter(m => acting.test(m[1]) || m[1] === 'clickable').map(m => plain(m[2] ?? ''))

// lacking are names that are not there, each of ours counted once. Ours may go
// on with the field's value, and longest names choose first.
function lacking(wanted, have) {
  return wanted.filter(n => n).sort((a, b) => b.length - a.length).filter(n => {
    let i = have.indexOf(n)
    if (i < 0) i = have.findIndex(h => h.startsWith(n + ' '))
    if (i >= 0) have.splice(i, 1)
    return i < 0
  })
}

let failed = false
try {
  const tapin = await start(program, ['--home', home, 'mcp'])
  const playwright = await start(process.execPath, [join(import.meta.dirname, 'node_modules/@playwright/mcp/cli.js'), '--headless', '--isolated', '--output-dir', home, '--no-sandbox', '--executable-path', chromium])
  console.log(`${'page'.padEnd(12)} ${'@playwright/mcp'.padStart(16)} ${'tapin'.padStart(8)} ${'ratio'.padStart(7)} ${'elements'.padStart(9)}  missing`)
  let sums = [0, 0]
  for (const name of Object.keys(pages)) {
    const url = `http://${host}/${name}`
    const a = await whole(playwright, url, {}), b = await whole(tapin, url, { max_chars: 200000 })
    const counts = [encode(a).length, encode(b).length]
    const missing = lacking(theirs(a), ours(b))
    sums = sums.map((s, i) => s + counts[i])
    const ratio = counts[1] / counts[0]
    failed ||= ratio > target || missing.length > 0
    console.log(`${name.padEnd(12)} ${String(counts[0]).padStart(16)} ${String(counts[1]).padStart(8)} ${ratio.toFixed(2).padStart(7)} ${String(theirs(a).length).padStart(9)}  ${missing.length}${missing.length ? ': ' + missing.slice(0, 3).join('; ') : ''}`)
    if (process.env.SHOW === name) console.log(a, b)
  }
  console.log(`${'all'.padEnd(12)} ${String(sums[0]).padStart(16)} ${String(sums[1]).padStart(8)} ${(sums[1] / sums[0]).toFixed(2).padStart(7)}   (o200k_base; target ${target} on each page, nothing missing)`)
  await Promise.all([tapin.close(), playwright.close()])
} finally {
  try { execFileSync(program, ['--home', home, 'down'], { stdio: 'ignore' }) } catch { /* it did not come that far */ }
  rmSync(home, { recursive: true, force: true })
  site.close()
}
process.exit(failed ? 1 : 0)
