// Clicks through the hard pages with playwright-core. Reads {chromium, rounds,
// tasks: [{name, way, url, css, text}]} from standard input, writes one line of
// JSON a task: {name, way, ms: [...], failed}.
import { chromium } from 'playwright-core'
import { readFileSync } from 'node:fs'

const job = JSON.parse(readFileSync(0, 'utf8'))
const browser = await chromium.launch({ executablePath: job.chromium, args: ['--no-sandbox'] })
const page = await (await browser.newContext({ viewport: { width: 1280, height: 720 } })).newPage()

// A person sees one page; Playwright looks into a frame only when told to.
async function find(task) {
  for (const frame of page.frames()) {
    const found = task.way === 'css' ? frame.locator(task.css) : frame.getByText(task.text)
    if (await found.count()) return found.first()
  }
  return task.way === 'css' ? page.locator(task.css) : page.getByText(task.text)
}

for (const task of job.tasks) {
  const out = { name: task.name, way: task.way, ms: [], failed: 0 }
  for (let round = 0; round < job.rounds; round++) {
    await page.goto(task.url, { waitUntil: 'load' })
    const began = performance.now()
    try {
      await (await find(task)).click({ timeout: 3000 })
      const took = performance.now() - began
      await page.waitForFunction(() => document.title === 'ok', null, { timeout: 1000 })
      out.ms.push(took)
    } catch {
      out.failed++
    }
  }
  console.log(JSON.stringify(out))
}
await browser.close()
