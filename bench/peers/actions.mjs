// playwright-core as a participant: reads one request a line, answers each with
// {ms} or {text} or {error}. What it costs to get here and back is not counted.
import { chromium } from 'playwright-core'
import { createInterface } from 'node:readline'

let browser, page
const does = {
  navigate: r => page.goto(r.url, { waitUntil: 'load' }),
  screenshot: () => page.screenshot({ type: 'png' }),
  click: r => page.click(r.selector),
  fill: r => page.fill(r.selector, r.value),
  text: () => page.innerText('body'),
  snapshot: () => page.locator('body').ariaSnapshot(),
}

async function answer(r) {
  if (r.chromium) {
    browser = await chromium.launch({ executablePath: r.chromium, args: r.args })
    page = await (await browser.newContext({ viewport: { width: 1280, height: 720 } })).newPage()
    return {}
  }
  if (r.kind === 'says') return { text: await page.innerText('body') }
  const began = performance.now()
  await does[r.kind](r)
  return { ms: performance.now() - began }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line)).catch(e => ({ error: String(e.message ?? e) }))))
}
await browser?.close()
