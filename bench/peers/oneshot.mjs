// Opens pages for one call each with playwright-core, as tapin's one-shots do:
// a context, the page until DOMContentLoaded, a quiet network for up to 5 s, a
// picture or the text, and the context closed. Reads {chromium, rounds, urls}
// from standard input, writes {screenshot: [ms…], extract: [ms…]}.
import { chromium } from 'playwright-core'
import { readFileSync } from 'node:fs'

const job = JSON.parse(readFileSync(0, 'utf8'))
const browser = await chromium.launch({ executablePath: job.chromium, args: ['--no-sandbox'] })

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

const out = { screenshot: [], extract: [] }
for (let round = 0; round <= job.rounds; round++) {
  for (const kind of ['screenshot', 'extract']) {
    for (const url of job.urls) {
      const took = await once(kind, url)
      if (round > 0) out[kind].push(took) // the first one warms the disk
    }
  }
}
console.log(JSON.stringify(out))
await browser.close()
