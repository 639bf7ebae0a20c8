// Speaks to tapin as other people's programs do: the TypeScript SDK over both
// transports, and the MCP inspector's command line. Run by scripts/verify/mcp.sh.
//   node mcp.mjs PROGRAM HOME
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [program, home] = process.argv.slice(2)
const check = (is, what) => { if (!is) throw new Error('not so: ' + what) }
const text = result => result.content.filter(c => c.type === 'text').map(c => c.text).join('\n')

const site = createServer((_, res) => res.setHeader('content-type', 'text/html').end(`<!doctype html><title>Verify</title>
<label>Name <input></label><button onclick="document.body.append('It worked')">Go</button>`))
await new Promise(done => site.listen(0, '127.0.0.1', done))
const host = `127.0.0.1:${site.address().port}`
writeFileSync(join(home, 'config.yaml'), `listen:\n  control: 127.0.0.1:0\n  public: 127.0.0.1:0\negress:\n  allow: ["${host}"]\n`)

// The SDK holds every structured answer against the tool's schema by itself.
async function walk(name, transport) {
  const client = new Client({ name: 'verify', version: '1' })
  await client.connect(transport)
  const { tools } = await client.listTools()
  check(tools.length >= 19 && tools.every(t => t.description && t.annotations && t.inputSchema.type === 'object'), 'tools are described')
  const call = async (tool, args) => client.callTool({ name: tool, arguments: args })
  const opened = await call('browser_navigate', { url: `http://${host}/` })
  check(!opened.isError && text(opened).includes('button: Go'), 'a page opens: ' + text(opened))
  const ref = /\[(e\d+)\] button: Go/.exec(text(opened))[1]
  const clicked = await call('browser_click', { element: 'Go button', ref })
  check(clicked.structuredContent.ok && text(clicked).includes('It worked'), 'a click tells what it did: ' + text(clicked))
  const typed = await call('browser_type', { label: 'Name', text: 'Ada' })
  check(text(typed).includes('Name = Ada'), 'typing shows: ' + text(typed))
  const picture = await call('browser_take_screenshot', {})
  check(picture.content.some(c => c.type === 'image' && c.data.length > 1000), 'a picture comes')
  const wrong = await call('browser_click', { target: '#nowhere', timeout_ms: 200 })
  check(wrong.isError && wrong.structuredContent.error === 'ELEMENT_NOT_FOUND' && wrong.structuredContent.suggested_next[0].tool === 'oc_handoff_start', 'a failure tells what next')
  await call('browser_close', {})
  await client.close()
  console.log(`verify: TypeScript SDK over ${name}: ${tools.length} tools, all held`)
}

await walk('stdio', new StdioClientTransport({ command: program, args: ['--home', home, 'mcp'], stderr: 'inherit' }))

// The first call has left a daemon running, as it should.
const control = readFileSync(join(home, 'control.addr'), 'utf8').trim()
const token = readFileSync(join(home, 'agent.token'), 'utf8').trim()
const authorization = `Bearer ${token}`
await walk('streamable HTTP', new StreamableHTTPClientTransport(new URL(`http://${control}/mcp`), { requestInit: { headers: { authorization } } }))

const inspector = join(import.meta.dirname, 'node_modules', '.bin', 'mcp-inspector')
const listed = JSON.parse(execFileSync(inspector, ['--cli', program, '--home', home, 'mcp', '--method', 'tools/list', '--strict'], { encoding: 'utf8', timeout: 60_000 }))
check(listed.tools.some(t => t.name === 'browser_click'), 'the inspector lists the tools')
const status = execFileSync(inspector, ['--cli', program, '--home', home, 'mcp', '--method', 'tools/call', '--tool-name', 'browser_status'], { encoding: 'utf8', timeout: 60_000 })
check(status.includes('There is no session'), 'the inspector calls a tool: ' + status)
console.log('verify: MCP inspector: lists and calls')
site.close()
