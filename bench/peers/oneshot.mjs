// Opens pages for one call each with playwright-core, as tapin's one-shots do:
// a context, the page until DOMContentLoaded, a quiet network for up to 5 s, a
// picture or the text, and the context closed. The argument is the path of
// Chromium. Reads lines {kind, url} from standard input, and answers each with
// the milliseconds it took.
import { chromium } from 'playwright-core'
import { createInterface } from 'node:readline'

const browser = await chromium.launch({ executablePath: process.argv[2], args: ['--no-sandbox'] })

async function once(kind, url) {
  const began = performance.now()
  const phone = kind === 'screenshot'
  const context = await browser.newContext(phone ? { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } : { viewport: { width: 1280, height: 720 } })
  const page = await context.newPage()
  await page.goto(url, { waitUntil: 'domcontentloaded', timeout: 15_000 })
  await page.waitForLoadState('networkidle', { timeout: 5_000 }).catch(() => {})
  if (phone) (await page.screenshot({ type: 'png' })).toString('base64')
  else await page.evaluate(() => document.body.innerText)
  const took = performance.now() - began
  await context.close()
  return took
}

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, url } = JSON.parse(line)
  console.log(await once(kind, url))
}
await browser.close()
