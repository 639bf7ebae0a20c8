// @ts-check
// Takes a picture of every state of the pages: screenshots.js FOLDER [name…].
// SCALE is how many pixels a phone has for one of CSS.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch, pictures } from "./chromium.js";
import { serve } from "./server.js";

const [folder = "screenshots", ...only] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const laptop = { viewport: { width: 1280, height: 800 } };
const side = { viewport: { width: 844, height: 390 }, hasTouch: true, isMobile: true };

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {{name: string, path: string, on?: object, dark?: boolean, both?: boolean, scene?: string, then?: (page: Page) => Promise<unknown>, until?: string}} Shot */

const live = '[data-bar="you"]';
const sheet = "dialog.sheet";
const curtain = "#curtain:not([hidden]) h1";
const tap = (/** @type {string} */ what) => async (/** @type {Page} */ p) => { await p.locator(what).click(); await p.waitForSelector(sheet); };

/** Goes to a tab of the console, with its first entry open. @param {string} tab */
const visit = (tab) => async (/** @type {Page} */ p) => {
  await p.locator(`[data-tab="${tab}"]`).click();
  if (tab === "history") await p.locator("summary >> nth=0").click();
};

/** Looks at the figures. */
const figures = () => async (/** @type {Page} */ p) => { await p.locator('[data-tab="stats"]').click(); await p.waitForSelector(".range"); };

/** Stands in for the phone's keyboard: the part of the glass that it leaves. @param {Page} p */
async function keyboardUp(p) {
  await p.locator('#fields [data-kind="password"]').tap();
  await p.evaluate(() => {
    const seen = /** @type {VisualViewport} */ (window.visualViewport);
    Object.defineProperty(seen, "height", { get: () => innerHeight - 336 });
    seen.dispatchEvent(new Event("resize"));
    const keys = document.body.appendChild(document.createElement("div"));
    keys.style.cssText = "position:fixed;inset:auto 0 0;height:336px;z-index:9;background:repeating-linear-gradient(#0000 0 10px,#8883 10px 54px),#cfd2d9";
  });
  await p.waitForTimeout(700);
}

/** @type {Shot[]} */
const shots = [
  { name: "driving", path: "driving", both: true, until: live },
  { name: "keyboard", path: "driving", both: true, until: live, then: keyboardUp },
  { name: "code", path: "code", until: live },
  { name: "wide-page", path: "wide", until: live },
  { name: "watching", path: "watching", both: true, until: '[data-bar="watch"]' },
  { name: "countdown", path: "countdown", until: "#banner:not([hidden])" },
  { name: "again", path: "again", both: true, until: "#banner:not([hidden])" },
  { name: "unsafe", path: "unsafe", until: live },
  { name: "reconnecting", path: "lost", until: '.dim #banner:not([hidden])' },
  { name: "crashed", path: "crashed", until: "#banner:not([hidden])" },
  { name: "connecting", path: "connecting", both: true, until: curtain },
  { name: "number", path: "number", both: true, until: ".number" },
  ...["finished", "cancelled", "timed_out", "parked", "stopped", "revoked", "moved"].map((path) => ({ name: path, path, both: path === "finished", until: `${curtain}:not(:text("Opening"))` })),
  { name: "expired", path: "expired", until: ".badge" },
  { name: "unknown", path: "unknown", until: ".badge" },
  { name: "more", path: "driving", both: true, until: live, then: tap('#driving [data-do="more"]') },
  { name: "tabs", path: "driving", until: live, then: tap("#tabs") },
  { name: "ask", path: "driving", until: live, then: tap("#ask") },
  { name: "done", path: "driving", until: live, then: tap("#done") },
  ...["confirm", "prompt", "permission", "auth", "file"].map((path) => ({ name: path, path, both: path === "permission", until: sheet })),
  { name: "downloads", path: "downloads", until: live, then: async (p) => { await tap('#driving [data-do="more"]')(p); await p.locator('[data-id="downloads"]').click(); await p.waitForSelector('[data-name="downloads"]'); } },
  { name: "side", path: "driving", on: side, until: live },
  { name: "laptop", path: "wide", on: laptop, both: true, until: live },
  { name: "laptop-watching", path: "watching", on: laptop, until: '[data-bar="watch"]' },
  { name: "laptop-permission", path: "permission", on: laptop, until: sheet },
  ...[{ suffix: "", on: phone }, { suffix: "-laptop", on: laptop }].flatMap(({ suffix, on }) => [
    { name: `console${suffix}`, path: "/console", on, both: true, until: ".ready" },
    ...["sessions", "logins", "history", "devices"].map((tab) => ({ name: `console-${tab}${suffix}`, path: "/console", on, both: true, until: ".ready", then: visit(tab) })),
    { name: `console-lookups${suffix}`, path: "/console", on, both: true, until: ".ready", then: async (/** @type {Page} */ p) => { await visit("sessions")(p); await p.locator(".lookups .read").evaluate((e) => e.scrollIntoView()); } },
    { name: `console-stats${suffix}`, path: "/console", on, both: true, until: ".ready", then: figures() },
    { name: `console-stats-whole${suffix}`, path: "/console", on: { viewport: { width: on.viewport.width, height: 2600 } }, both: true, until: ".ready", then: figures() },
    { name: `console-stats-empty${suffix}`, path: "/console", on, both: true, scene: "empty", until: ".ready", then: figures() },
    { name: `console-empty${suffix}`, path: "/console", on, both: true, scene: "empty", until: ".ready" },
    { name: `console-refused${suffix}`, path: "/console", on, both: true, scene: "refused", until: ".badge" },
    { name: `console-lost${suffix}`, path: "/console", on, scene: "lost", until: "#lost:not([hidden])" },
    { name: `console-ask${suffix}`, path: "/console", on, both: true, until: ".ready", then: tap('[data-do="abort"] >> nth=0') },
    { name: `console-note${suffix}`, path: "/console", on, until: ".ready", then: async (/** @type {Page} */ p) => { await p.locator('[data-do="extend"] >> nth=0').click(); await p.waitForSelector("#toast.shown"); } },
  ]),
];

const browser = await launch();
const site = await serve(await pictures(browser));
let taken = 0;
for (const s of shots) {
  for (const scheme of s.both ? /** @type {const} */ (["light", "dark"]) : /** @type {const} */ (["light"])) {
    const name = `${s.name}${scheme === "dark" ? "-dark" : ""}`;
    if (only.length && !only.includes(name)) continue;
    const context = await browser.newContext({ ...phone, ...s.on, deviceScaleFactor: s.on === laptop ? 1 : Number(process.env.SCALE ?? 3), colorScheme: scheme });
    const page = await context.newPage();
    page.on("pageerror", (e) => console.error(`${name}: ${e.message}`));
    page.on("console", (m) => { if (m.type() === "error" && !/WebSocket|status of 4/.test(m.text())) console.error(`${name}: ${m.text()}`); });
    site.record("console").frames = 0;
    site.scene.console = /** @type {any} */ (s.scene ?? "full");
    await page.goto(site.url + (s.path.startsWith("/") ? s.path : `/live/${s.path}~${name}#t=secret`));
    if (s.until) await page.waitForSelector(s.until, { state: "attached", timeout: 20_000 });
    if (s.path !== "connecting") await page.waitForTimeout(350);
    await s.then?.(page);
    await page.waitForTimeout(350);
    await page.screenshot({ path: join(folder, `${name}.png`) });
    await context.close();
    taken++;
  }
}
await browser.close();
site.close();
console.log(`screenshots: ${taken} in ${folder}`);
