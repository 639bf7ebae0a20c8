// @ts-check
// The browser for tests and screenshots, and the pages that play the remote side.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** Starts the browser that tapin itself would find. */
export function launch() {
  const found = [process.env.TAPIN_CHROME, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"]
    .find((p) => p && existsSync(p));
  if (!found) throw new Error("there is no Chromium here: set TAPIN_CHROME");
  const root = process.getuid?.() === 0;
  return chromium.launch({ executablePath: found, args: root ? ["--no-sandbox"] : [] });
}

/** Takes the pictures that the stand-in shows, with the places of their fields. @param {import("playwright-core").Browser} browser */
export async function pictures(browser) {
  /** @type {Record<string, import("./server.js").Shown>} */
  const all = {};
  for (const [name, file, width, height] of /** @type {const} */ ([["signin", "signin", 390, 844], ["code", "code", 390, 844], ["signin-wide", "signin", 1280, 720]])) {
    const page = await browser.newPage({ viewport: { width, height }, deviceScaleFactor: 2 });
    await page.goto(`file://${fileURLToPath(new URL(`pages/${file}.html`, import.meta.url))}`);
    const fields = await page.evaluate(() => [...document.querySelectorAll("[data-kind]")].map((e, i) => {
      const r = e.getBoundingClientRect(), css = getComputedStyle(e), f = /** @type {HTMLInputElement & HTMLSelectElement} */ (e);
      const masked = ["password", "otp"].includes(/** @type {HTMLElement} */ (e).dataset.kind ?? "");
      return {
        id: `f${i}`, kind: /** @type {HTMLElement} */ (e).dataset.kind, label: /** @type {HTMLElement} */ (e).dataset.label, x: r.x, y: r.y, w: r.width, h: r.height,
        ...(masked ? { masked, length: f.value.length } : { value: f.value }),
        options: f.options ? [...f.options].map((o) => ({ v: o.value, label: o.text, selected: o.selected })) : undefined,
        font: { size: parseFloat(css.fontSize), family: css.fontFamily, weight: css.fontWeight, color: css.color, align: css.textAlign, pad: [0, 14, 0, 14] },
      };
    }));
    const jpegs = [await page.screenshot({ type: "jpeg", quality: 80 })];
    all[name] = { jpegs, width, height, fields };
    await page.close();
  }
  return all;
}
