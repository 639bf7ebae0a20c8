// @ts-check
// No page in any state has a fault that axe-core knows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch, pictures } from "../dev/chromium.js";
import { serve } from "../dev/server.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
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

const sheet = "dialog[open]";
/** @type {Array<[path: string, until: string, click?: string]>} */
const states = [
  ["/live/driving", "#fields > *"], ["/live/watching", '[data-bar="watch"]'], ["/live/countdown", "#banner:not([hidden])"], ["/live/again", "#banner:not([hidden])"],
  ["/live/unsafe", '[data-bar="you"]'], ["/live/crashed", "#banner:not([hidden])"], ["/live/number", ".number"], ["/live/finished", ".badge"], ["/live/parked", ".badge"], ["/live/expired", ".badge"], ["/live/connecting", "#curtain h1"],
  ["/live/permission", sheet], ["/live/auth", sheet], ["/live/prompt", sheet], ["/live/file", sheet], ["/live/driving", sheet, '#driving [data-do="more"]'], ["/live/driving", sheet, "#tabs"], ["/live/driving", sheet, "#ask"],
  ...["inbox", "sessions", "logins", "history", "stats", "devices"].map((tab) => /** @type {[string, string, string]} */ (["/console", ".ready", `[data-tab="${tab}"]`])),
];

for (const scheme of /** @type {const} */ (["light", "dark"])) {
  for (const [path, until, click] of states) {
    test(`${path} ${click ?? ""} in ${scheme}`, async () => {
      const page = await browser.newPage({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: scheme, reducedMotion: "reduce", bypassCSP: true });
      await page.goto(`${site.url}${path}${path.startsWith("/live") ? `~axe-${scheme}-${click?.length ?? 0}#t=x` : ""}`);
      if (click) {
        await page.locator(click).click();
      }
      await page.waitForSelector(until, { state: "attached" });
      await page.evaluate(axe);
      const found = await page.evaluate(async () => {
        const r = await /** @type {any} */ (window).axe.run(document, { resultTypes: ["violations"] });
        return r.violations.map((/** @type {any} */ v) => `${v.id}: ${v.nodes.map((/** @type {any} */ n) => `${n.target} (${n.any[0]?.message ?? ""})`).join(", ")}`);
      });
      await page.close();
      assert.deepEqual(found, []);
    });
  }
}
