// @ts-check
// The figures of the console: asked for when somebody looks, shown in words, and
// never as markup.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, pictures } from "../dev/chromium.js";
import { figures } from "../dev/figures.js";
import { serve } from "../dev/server.js";

/** @type {import("playwright-core").Browser} */ let browser;
/** @type {Awaited<ReturnType<typeof serve>>} */ let site;

before(async () => {
  browser = await launch();
  site = await serve(await pictures(browser));
});
after(async () => {
  await browser?.close();
  site?.close();
});

/** @param {"full" | "empty"} scene */
async function visit(scene) {
  site.scene.console = scene;
  site.record("console").m.length = 0;
  const page = await browser.newPage({ viewport: { width: 320, height: 700 } });
  await page.goto(`${site.url}/console`);
  await page.waitForSelector(".ready");
  await page.locator('[data-tab="stats"]').click();
  await page.waitForSelector(".range");
  return page;
}

const asked = () => site.record("console").m.filter((m) => m.a === "figures").map((m) => m.days);

test("figures are asked for when somebody looks, and for as long as they choose, by keyboard too", async () => {
  const page = await visit("full");
  assert.deepEqual(asked(), [30]);
  assert.equal(await page.locator('[aria-pressed="true"]').innerText(), "30 days");
  await page.locator('.range [data-id="7"]').focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector('.range [data-id="7"][aria-pressed="true"]');
  assert.deepEqual(asked(), [30, 7]);
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("data-id")), "7", "the focus stays where it was");
  assert.equal(await page.locator(".columns rect.good").count(), 7);
  assert.equal(await page.locator("#toast.shown").count(), 0);
  await page.close();
});

test("what is shown says what was told, and nothing is wider than a small phone", async () => {
  const page = await visit("full");
  const text = await page.locator("#content").innerText();
  for (const want of [/Until you come\s+74 s\s+9 of 10 within 6 min/, /Unblocked\s+78 %\s+29 of 37/, /Nobody came\s+4/, /A saved login could have avoided 5 of 6\./, /and 4 sites more/, /142\.80 EUR\s+5000 JPY/, /Perhaps paid\s+19\.90 USD/, /214 minutes of 600/]) {
    assert.match(text, want);
  }
  assert.match(await page.locator(".columns svg").getAttribute("aria-label") ?? "", /38 asked in 30 days; 4 on /);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  const hostile = figures(30);
  hostile.sites[0].site = "<img src=x onerror=alert(1)>";
  site.record("console").ws?.send(JSON.stringify({ ...hostile, counting: true, kept_days: 10 }));
  await page.waitForSelector('text="<img src=x onerror=alert(1)>"');
  assert.equal(await page.locator("#content img").count(), 0);
  assert.match(await page.locator("#content").innerText(), /still being counted[\s\S]*go back 10 days/);
  await page.close();
});

test("before anything was asked the page says what it will show", async () => {
  const page = await visit("empty");
  assert.match(await page.locator("#content").innerText(), /Nothing yet: no agent has asked for you\./);
  assert.equal(await page.locator("#content svg rect").count(), 0);
  await page.close();
});
