// @ts-check
// The cards of one-shots: every kind of what came of a call, also of callers who
// send less than we do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, pictures } from "../dev/chromium.js";
import { serve } from "../dev/server.js";

/** @type {import("playwright-core").Browser} */ let browser;
/** @type {Awaited<ReturnType<typeof serve>>} */ let site;
/** @type {import("playwright-core").Page} */ let page;

before(async () => {
  browser = await launch();
  site = await serve(await pictures(browser));
  page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  await page.goto(`${site.url}/console`);
  await page.waitForSelector(".ready", { state: "attached" });
  await page.locator('[data-tab="sessions"]').click();
});
after(async () => {
  await browser?.close();
  site?.close();
});

const card = (/** @type {string} */ id) => page.locator(`[data-key="${id}"]`);

test("a picture has its title, where it led and its status", async () => {
  assert.match(await card("crd_1").innerText(), /Release notes[\s\S]*docs\.example\.org\/releases\/42[\s\S]*status 200 · lower quality/);
  assert.equal(await card("crd_1").locator("img").getAttribute("src"), "/console/shot/crd_1");
  assert.equal(await card("crd_1").locator("button").count(), 0);
});

test("what was read stands as it was", async () => {
  assert.match(await card("crd_2").locator("pre").innerText(), /^Printer paper A4\n500 sheets/);
});

test("a failure is a sentence with its code, and can be tried again", async () => {
  assert.match(await card("crd_3").innerText(), /does not let pages reach[\s\S]*BLOCKED_TARGET/);
  assert.match(await card("crd_4").innerText(), /tried again 2 times/);
  await card("crd_4").locator("button").click();
  await page.waitForSelector("#toast.shown");
  assert.deepEqual(site.record("console").m.filter((m) => m.a === "look_again").map((m) => m.id), ["crd_4"]);
});

test("data of the first version, without an error field, still renders", async () => {
  const text = await page.evaluate(async () => {
    const src = [...document.querySelectorAll('link[rel="modulepreload"], script[type="module"]')].map((e) => e.getAttribute("href") ?? e.getAttribute("src") ?? "").find((s) => /lookups/.test(s)) ?? "";
    const { lookup } = await import(new URL(src, location.href).href);
    const old = lookup({ id: "x", kind: "screenshot", url: "https://example.com/", title: "Example Domain", final_url: "https://example.com/", status_code: 200, image_base64: "iVBORw0KGgo=", mime_type: "image/png", truncated: false }, Date.now());
    const bad = lookup({ id: "y", kind: "screenshot", url: "https://example.com/", image_base64: '"><img>', mime_type: "text/html" }, Date.now());
    const bare = lookup({ id: "z", kind: "extract", url: "https://example.com/" }, Date.now());
    return [old.querySelector("img")?.getAttribute("src"), old.querySelectorAll("button").length, bad.querySelectorAll("img").length, bare.textContent];
  });
  assert.deepEqual(text.slice(0, 3), ["data:image/png;base64,iVBORw0KGgo=", 0, 0]);
  assert.match(String(text[3]), /Nothing to show/);
});
