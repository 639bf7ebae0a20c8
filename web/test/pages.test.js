// @ts-check
// The built pages in a real browser, against a stand-in that plays the protocol.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, pictures } from "../dev/chromium.js";
import { consoleState, scenarios } from "../dev/scenarios.js";
import { frameOf, serve } from "../dev/server.js";

/** @typedef {import("playwright-core").Page} Page */

/** @type {import("playwright-core").Browser} */ let browser;
/** @type {Awaited<ReturnType<typeof serve>>} */ let site;
/** @type {Awaited<ReturnType<typeof pictures>>} */ let shown;
let opened = 0;

before(async () => {
  browser = await launch();
  shown = await pictures(browser);
  site = await serve(shown);
});
after(async () => {
  await browser?.close();
  site?.close();
});

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
const laptop = { viewport: { width: 1280, height: 800 } };

/**
 * Opens a live page. What the page complains of fails the test.
 * @param {string} scenario @param {{on?: object, until?: string, hash?: string, before?: (page: Page) => Promise<unknown>}} [o]
 */
async function open(scenario, o = {}) {
  const id = `${scenario}~${++opened}`;
  const context = await browser.newContext(/** @type {any} */ (o.on ?? phone));
  const page = await context.newPage();
  /** @type {string[]} */ const wrong = [];
  /** @type {string[]} */ const asked = [];
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("console", (m) => { if (m.type() === "error" && !/WebSocket|status of 4/.test(m.text())) wrong.push(m.text()); });
  page.on("request", (r) => asked.push(r.url()));
  await o.before?.(page);
  await page.goto(`${site.url}/live/${id}${o.hash ?? "#t=the-token"}`);
  await page.waitForSelector(o.until ?? '[data-bar="you"]', { state: "attached" });
  if (!o.until) await page.waitForSelector("#fields > *", { state: "attached" });
  const heard = site.record(id);
  return {
    page, id, asked, heard,
    sent: (/** @type {string} */ t) => heard.m.filter((m) => m.t === t),
    say: (/** @type {object} */ m) => heard.ws?.send(JSON.stringify(m)),
    /** Waits until something holds. */
    async until(/** @type {() => unknown} */ holds, /** @type {string} */ what = String(holds)) {
      for (const end = Date.now() + 10_000; !holds();) {
        if (Date.now() > end) assert.fail(`never: ${what}; heard ${JSON.stringify(heard.m.slice(-5))}`);
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(null))));
      }
    },
    async close() {
      await context.close();
      assert.deepEqual(wrong, []);
      for (const url of asked) assert.ok(url.startsWith(site.url), `asks another origin: ${url}`);
    },
  };
}

/** Where a point of the picture is on the glass, measured from the canvas itself. @param {Page} page @param {number} x @param {number} y @param {{width: number, height: number}} of */
const onGlass = (page, x, y, of) => page.evaluate(([px, py, w, h]) => {
  const r = /** @type {Element} */ (document.querySelector("#picture")).getBoundingClientRect();
  return { x: r.left + (px / w) * r.width, y: r.top + (py / h) * r.height };
}, [x, y, of.width, of.height]);

const settled = (/** @type {Page} */ page) => page.evaluate(async () => { await Promise.all(document.getAnimations().filter((a) => a.effect?.getComputedTiming().iterations === 1).map((a) => a.finished.catch(() => null))); });

test("the token leaves the address, is shown once, and is in no request's address", async () => {
  const s = await open("driving");
  assert.equal(new URL(s.page.url()).hash, "");
  assert.deepEqual(s.heard.claims, [{ token: "the-token" }]);
  await s.page.goBack().catch(() => null);
  await s.page.goto(`${site.url}/live/${s.id}`);
  await s.page.waitForSelector('[data-bar="you"]', { state: "attached" });
  assert.deepEqual(s.heard.claims, [{ token: "the-token" }], "the cookie is enough");
  for (const url of s.asked) assert.ok(!url.includes("the-token"));
  assert.equal(await s.page.evaluate(() => localStorage.length + sessionStorage.length), 0);
  await s.close();
});

for (const [name, on, prepare] of /** @type {Array<[string, object, (p: Page) => Promise<unknown>]>} */ ([
  ["at rest", phone, async () => {}],
  ["on a small phone", { ...phone, viewport: { width: 320, height: 568 } }, async () => {}],
  ["turned on its side", phone, (p) => p.setViewportSize({ width: 844, height: 390 })],
  ["zoomed in", phone, async (p) => { await p.locator('#driving [data-do="more"]').click(); await p.locator('[data-id="zoom"]').click(); await settled(p); }],
  ["with the keyboard open", phone, async (p) => {
    await p.locator("#keyboard-button").click();
    await p.evaluate(() => {
      const seen = /** @type {VisualViewport} */ (window.visualViewport);
      Object.defineProperty(seen, "height", { get: () => innerHeight - 300 });
      seen.dispatchEvent(new Event("resize"));
    });
    await settled(p);
  }],
])) {
  test(`a tap lands on the same point of the page, ${name}`, async () => {
    const s = await open("driving", { on });
    await prepare(s.page);
    // A point of the picture that is on the glass whatever was done.
    const box = await s.page.locator("#stage").boundingBox();
    assert.ok(box);
    const mid = { x: box.x + box.width / 2 + 7, y: box.y + box.height / 2 + 5 };
    const r = await s.page.locator("#picture").boundingBox();
    assert.ok(r);
    const want = { x: ((mid.x - r.x) / r.width) * 390, y: ((mid.y - r.y) / r.height) * 844 };
    const before = s.sent("ptr").length;
    await s.page.evaluate(() => { for (const e of document.querySelectorAll("#fields > *")) /** @type {HTMLElement} */ (e).style.pointerEvents = "none"; });
    await s.page.touchscreen.tap(mid.x, mid.y);
    await s.until(() => s.sent("ptr").length >= before + 2);
    const [down, up] = s.sent("ptr").slice(before);
    assert.deepEqual([down.k, up.k, down.h], ["down", "up", "hof_1"]);
    assert.ok(Math.abs(down.x - want.x) < 0.6 && Math.abs(down.y - want.y) < 0.6, `(${down.x}, ${down.y}) is not (${want.x}, ${want.y})`);
    await s.close();
  });
}

test("a tap into a field is felt by the page and opens the phone's own control", async () => {
  const s = await open("driving");
  const email = s.page.locator('#fields [data-kind="email"]');
  await email.tap();
  await s.until(() => s.sent("focus").length === 1 && s.sent("ptr").length === 2);
  const down = s.sent("ptr")[0], field = shown.signin.fields[0];
  assert.ok(down.x > field.x && down.x < field.x + field.w && down.y > field.y && down.y < field.y + field.h);
  assert.deepEqual(await email.evaluate((e) => [e.getAttribute("inputmode"), e.getAttribute("type"), e.getAttribute("autocomplete"), document.activeElement === e]), ["email", "text", "off", true]);
  await s.close();
});

test("controls lie over their fields and are never small enough for a phone to zoom", async () => {
  const s = await open("driving");
  for (const [i, f] of shown.signin.fields.entries()) {
    const at = await onGlass(s.page, f.x, f.y, shown.signin), end = await onGlass(s.page, f.x + f.w, f.y + f.h, shown.signin);
    const box = await s.page.locator("#fields > *").nth(i).boundingBox();
    assert.ok(box && Math.abs(box.x - at.x) < 1 && Math.abs(box.y - at.y) < 1 && Math.abs(box.x + box.width - end.x) < 1 && Math.abs(box.y + box.height - end.y) < 1, `${f.kind}: ${JSON.stringify(box)}`);
  }
  const fonts = await s.page.evaluate(() => [...document.querySelectorAll("#fields > *, #keys")].map((e) => parseFloat(getComputedStyle(e).fontSize)));
  assert.ok(fonts.every((f) => f >= 16), String(fonts));
  await s.close();
});

test("a wide page opens on a phone large enough to read, where its fields are", async () => {
  const s = await open("wide");
  const stage = await s.page.locator("#stage").boundingBox(), picture = await s.page.locator("#picture").boundingBox();
  assert.ok(stage && picture && picture.width > 1.5 * stage.width, `the picture is ${picture?.width} px wide`);
  const box = await s.page.locator('#fields [data-kind="password"]').boundingBox();
  assert.ok(box && box.x >= stage.x && box.x + box.width <= stage.x + stage.width);
  // A page whose form stands at its side, on another tab.
  const fields = shown["signin-wide"].fields.map((f) => ({ ...f, x: 20 }));
  // Its fields are told of before it is seen.
  s.say({ t: "fields", tab: "t2", n: 2, focus: null, fields });
  s.heard.ws?.send(frameOf(shown["signin-wide"], 50, 2, 1));
  await s.until(() => s.sent("ack").at(-1)?.number === 50);
  await s.page.waitForFunction(() => {
    const r = /** @type {Element} */ (document.querySelector('#fields [data-kind="password"]')).getBoundingClientRect();
    return r.left >= 0 && r.right <= innerWidth;
  });
  await s.close();
});

test("what is typed arrives as edits from what was there, and a mask of the page is shown", async () => {
  const s = await open("driving");
  await s.page.locator('#fields [data-kind="email"]').tap();
  await s.page.keyboard.press("End");
  await s.page.keyboard.type("äb👍");
  await s.page.keyboard.press("Backspace");
  await s.until(() => s.sent("edit").at(-1)?.value === "owner@example.comäb");
  const edits = s.sent("edit");
  for (let i = 1; i < edits.length; i++) assert.deepEqual([edits[i].base, edits[i].seq], [edits[i - 1].value, edits[i - 1].seq + 1]);
  assert.equal(edits[0].base, "owner@example.com");
  const last = edits.at(-1);
  s.say({ t: "caret", id: last.id, seq: last.seq - 1, value: "OLD", selection: [0, 0] });
  s.say({ t: "caret", id: last.id, seq: last.seq, value: "MASKED", selection: [3, 3] });
  await s.page.waitForFunction(() => /** @type {HTMLInputElement} */ (document.activeElement).value === "MASKED");
  await s.page.keyboard.press("Enter");
  await s.until(() => s.sent("enter").length === 1);
  await s.close();
});

test("a password is typed, never shown, and not kept", async () => {
  const s = await open("driving");
  const field = s.page.locator('#fields [data-kind="password"]');
  assert.equal(await field.inputValue(), "", "nothing stands in it before");
  await field.tap();
  await s.page.keyboard.press("End");
  await s.page.keyboard.type("s3cret-x");
  await s.until(() => s.sent("edit").at(-1)?.value.endsWith("s3cret-x"));
  assert.deepEqual(s.sent("edit").slice(0, 2).map((e) => [e.base, e.value]), [[null, "s"], ["s", "s3"]], "what stood there is replaced");
  assert.deepEqual(await field.evaluate((e) => [getComputedStyle(e).webkitTextFillColor, e.getAttribute("type"), e.getAttribute("autocomplete")]), ["rgba(0, 0, 0, 0)", "password", "one-time-code"]);
  await s.page.locator("#keyboard-button").focus();
  await s.until(() => s.sent("blur").length === 1);
  assert.equal(await field.inputValue(), "");
  assert.ok(!(await s.page.content()).includes("s3cret-x"));
  await s.close();
});

test("a composition of Chinese is sent when it is finished, a word of a Latin keyboard at once", async () => {
  const s = await open("driving");
  await s.page.locator('#fields [data-kind="email"]').tap();
  await s.page.keyboard.press("End");
  const cdp = await s.page.context().newCDPSession(s.page);
  const before = s.sent("edit").length;
  await cdp.send("Input.imeSetComposition", { text: "に", selectionStart: 1, selectionEnd: 1 });
  await cdp.send("Input.imeSetComposition", { text: "にほ", selectionStart: 2, selectionEnd: 2 });
  await cdp.send("Input.insertText", { text: "日本" });
  await s.until(() => s.sent("edit").at(-1)?.value.endsWith("日本"));
  assert.ok(s.sent("edit").slice(before).every((e) => !/[にほ]/.test(e.value)));
  await cdp.send("Input.imeSetComposition", { text: "hel", selectionStart: 3, selectionEnd: 3 });
  await s.until(() => s.sent("edit").at(-1)?.value.endsWith("日本hel"));
  await cdp.send("Input.insertText", { text: "hello" });
  await s.until(() => s.sent("edit").at(-1)?.value.endsWith("日本hello"));
  await s.close();
});

test("a page that moves its focus on takes the open keyboard with it, and opens none by itself", async () => {
  const s = await open("code");
  const fields = shown.code.fields;
  assert.notEqual(await s.page.evaluate(() => document.activeElement?.closest("#fields")?.id), "fields");
  await s.page.locator("#fields > *").nth(2).tap();
  await s.until(() => s.sent("focus").length === 1);
  const at = (/** @type {number} */ n) => s.say({ t: "fields", tab: "t1", n: 9, focus: fields[n].id, fields });
  at(2);
  at(3);
  await s.page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Digit 4");
  // The field goes away with the focus: the keyboard is kept for what comes.
  s.say({ t: "fields", tab: "t1", n: 10, focus: null, fields: fields.slice(0, 2) });
  await s.page.waitForFunction(() => document.activeElement?.id === "keys");
  await s.close();
});

test("a field that was gone to keeps the focus, however late the page hears of it", async () => {
  const s = await open("driving");
  const { fields } = shown.signin;
  const on = (/** @type {string} */ kind) => fields.find((f) => f.kind === kind).id;
  const focus = () => s.page.evaluate(() => /** @type {HTMLElement | null} */ (document.activeElement)?.dataset.kind);
  const later = () => s.page.evaluate(() => { const now = performance.now.bind(performance); performance.now = () => now() + 60_000; });
  /** Told of, and taken in: the caret that comes after it is seen. */
  const at = async (/** @type {string} */ kind) => {
    s.say({ t: "fields", tab: "t1", n: 9, focus: on(kind), fields });
    await s.page.waitForSelector(`#fields .remote[data-kind="${kind}"]`, { state: "attached" });
  };
  await s.page.locator('#fields [data-kind="email"]').tap();
  await s.until(() => s.sent("focus").length === 1);
  await at("email");
  await s.page.locator('#fields [data-kind="password"]').tap();
  await s.until(() => s.sent("focus").length === 2);
  await later();
  s.say({ t: "fields", tab: "t1", n: 9, focus: null, fields });
  await s.page.waitForSelector("#fields .remote", { state: "detached" });
  await at("email");
  assert.equal(await focus(), "password", "a password is not typed where it can be read");
  s.say({ t: "reached", n: s.sent("focus")[1].n });
  await at("password");
  await at("email");
  assert.equal(await focus(), "email", "a page that has heard of it may move it on");
  await s.close();
});

test("a tool that is seen works, also while what it opens is on its way", async () => {
  let arrive = () => {};
  const way = new Promise((done) => { arrive = () => done(null); });
  const s = await open("driving", {
    until: '[data-bar="you"]',
    before: (page) => page.route(/\/live\/sheets\.js$/, async (route) => {
      await way;
      await route.continue();
    }),
  });
  await s.page.locator("#tabs").click();
  await s.page.locator('#driving [data-do="more"]').click();
  arrive();
  await s.page.waitForSelector('dialog[open][data-name="more"]');
  assert.equal(await s.page.locator("dialog").count(), 1, "the last one only");
  await s.close();
});

test("the keyboard's button types into whatever the page has", async () => {
  const s = await open("driving");
  await s.page.locator("#keyboard-button").click();
  await s.page.waitForFunction(() => document.activeElement?.id === "keys");
  const cdp = await s.page.context().newCDPSession(s.page);
  await cdp.send("Input.insertText", { text: "ab" });
  await cdp.send("Input.insertText", { text: "👍" });
  await s.until(() => s.sent("text").length === 2);
  assert.deepEqual(s.sent("text").map((m) => m.s), ["ab", "👍"]);
  // As a phone does: the input loses a character, and no key says so.
  await s.page.evaluate(() => { document.execCommand("delete"); });
  await s.until(() => s.sent("key").length === 2);
  assert.deepEqual(s.sent("key").map((m) => `${m.key} ${m.k}`), ["Backspace down", "Backspace up"]);
  await s.page.keyboard.press("Enter");
  await s.until(() => s.sent("key").length === 4);
  assert.equal(s.sent("key").at(-1).key, "Enter");
  await s.close();
});

test("a laptop's mouse and keys reach the page as they are", async () => {
  const s = await open("wide", { on: laptop });
  const at = await onGlass(s.page, 640, 300, shown["signin-wide"]);
  await s.page.mouse.click(at.x, at.y, { clickCount: 2 });
  await s.until(() => s.sent("ptr").filter((m) => m.k === "up").length === 2);
  const down = s.sent("ptr").filter((m) => m.k === "down");
  assert.deepEqual(down.map((m) => [m.f, m.b, m.c]), [[-1, "left", 1], [-1, "left", 2]]);
  assert.ok(Math.abs(down[0].x - 640) < 1 && Math.abs(down[0].y - 300) < 1);
  await s.page.keyboard.press("a");
  await s.page.keyboard.press("Control+a");
  await s.page.keyboard.press("Tab");
  await s.until(() => s.sent("key").filter((m) => m.key === "Tab").length === 2);
  assert.deepEqual(s.sent("key").filter((m) => m.k === "down").map((m) => `${m.key} ${m.code} ${m.m}`), ["a KeyA 0", "Control ControlLeft 2", "a KeyA 2", "Tab Tab 0"]);
  await s.page.mouse.wheel(0, 120);
  await s.until(() => s.sent("wheel").length > 0);
  assert.ok(s.sent("wheel")[0].dy > 0);
  await s.page.mouse.click(at.x, at.y, { button: "right" });
  await s.until(() => s.sent("ptr").some((m) => m.b === "right" && m.k === "up"));
  await s.close();
});

test("a list is chosen from with the phone's own picker", async () => {
  const s = await open("driving");
  await s.page.locator('#fields [data-kind="select"]').selectOption("t");
  await s.until(() => s.sent("choose").length === 1);
  assert.deepEqual([s.sent("choose")[0].id, s.sent("choose")[0].values], ["f2", ["t"]]);
  await s.close();
});

test("done cannot be brushed: a short touch asks, holding does it, Enter asks", async () => {
  const s = await open("driving");
  const done = s.page.locator("#done");
  await done.tap();
  await s.page.waitForSelector('dialog[data-name="done"]');
  await s.page.keyboard.press("Escape");
  await s.page.waitForSelector("dialog", { state: "detached" });
  await done.focus();
  await s.page.keyboard.press("Enter");
  await s.page.waitForSelector('dialog[data-name="done"]');
  assert.equal(s.sent("do").length, 0);
  await s.page.locator('[data-id="confirm-done"]').click();
  await s.until(() => s.sent("do").length === 1);
  const box = await done.boundingBox();
  assert.ok(box);
  await s.page.mouse.move(box.x + 20, box.y + 20);
  await s.page.mouse.down();
  await s.until(() => s.sent("do").length === 2, "holding does it");
  await s.page.mouse.up();
  assert.deepEqual(s.sent("do").map((m) => [m.a, m.h]), [["done", "hof_1"], ["done", "hof_1"]]);
  assert.equal(await s.page.locator("dialog").count(), 0);
  await s.close();
});

test("who watches sends no input, and may take over", async () => {
  const s = await open("watching", { until: '[data-bar="watch"]' });
  await s.page.waitForSelector("#fields > *", { state: "attached" });
  await s.page.touchscreen.tap(200, 400);
  await s.page.keyboard.press("a");
  await s.page.locator("#takeover").click();
  await s.until(() => s.sent("do").length === 1);
  assert.deepEqual([s.sent("do")[0].a, s.sent("do")[0].h], ["takeover", ""]);
  assert.equal(s.sent("ptr").length + s.sent("key").length + s.sent("text").length, 0);
  await s.close();
});

test("any touch stops the countdown, once", async () => {
  const s = await open("countdown");
  assert.match(await s.page.locator("#banner").innerText(), /Looks done\s+Returning to the agent in \d s/);
  await s.page.touchscreen.tap(200, 700);
  await s.page.touchscreen.tap(200, 720);
  await s.until(() => s.sent("ptr").length >= 4);
  assert.deepEqual(s.sent("do").map((m) => m.a), ["cancel_countdown"]);
  await s.page.waitForSelector("#banner", { state: "hidden" });
  await s.close();
});

test("a broken line keeps the picture, dimmed, and comes back by itself", async () => {
  const s = await open("driving");
  s.heard.ws?.close();
  await s.page.waitForSelector(".dim #banner:not([hidden])");
  await s.page.waitForSelector("html:not(.dim)");
  assert.equal(s.heard.claims.length, 1, "a line that was lost asks for no new claim");
  await s.page.touchscreen.tap(200, 700);
  await s.until(() => s.sent("ptr").length === 2);
  await s.close();
});

test("a second device shows its number and goes in when it may", async () => {
  const s = await open("number", { until: ".number" });
  assert.equal(await s.page.locator(".number").getAttribute("aria-label"), "Your number is 47");
  await s.until(() => s.heard.refused > 1, "it asks again by its socket");
  scenarios.number.claim = 200;
  scenarios.number.state = scenarios.driving.state;
  await s.page.waitForSelector('[data-bar="you"]', { state: "attached" });
  assert.deepEqual(s.heard.claims, [{ token: "the-token" }], "the token is not shown again");
  await s.close();
});

test("a parked hand-off opens again at a tap", async () => {
  const s = await open("parked", { until: '#curtain [data-do="resume"]' });
  scenarios.parked.then = {};
  await s.page.locator('#curtain [data-do="resume"]').click();
  await s.until(() => s.sent("do").some((m) => m.a === "resume"));
  await s.page.waitForSelector('[data-bar="you"]', { state: "attached" });
  await s.close();
});

test("the newest frame wins, and only what was drawn is acknowledged", async () => {
  const s = await open("driving");
  const before = s.heard.frames;
  for (let n = 100; n < 160; n++) s.heard.ws?.send(frameOf(shown.signin, n, 0));
  await s.until(() => s.sent("ack").at(-1)?.number === 159);
  const numbers = s.sent("ack").map((m) => m.number);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b), "in order");
  assert.ok(s.heard.frames - before < 60, "a burst is not drawn frame by frame");
  const { w, h } = s.sent("ack").at(-1);
  const r = await s.page.locator("#picture").boundingBox();
  assert.ok(r && Math.abs(r.width - w) <= 1 && Math.abs(r.height - h) <= 1);
  await s.close();
});

test("a dialog of the page is answered here, and goes when it is answered elsewhere", async () => {
  const s = await open("prompt", { until: "dialog[open]" });
  await s.page.locator("dialog input").fill("Phone");
  await s.page.getByRole("button", { name: "OK" }).click();
  await s.until(() => s.sent("do").length === 1);
  assert.deepEqual([s.sent("do")[0].a, s.sent("do")[0].accept, s.sent("do")[0].text], ["dialog", true, "Phone"]);
  await s.close();
  const t = await open("confirm", { until: "dialog[open]" });
  t.say(scenarios.driving.state?.());
  await t.page.waitForSelector("dialog", { state: "detached" });
  assert.equal(t.sent("do").length, 0);
  await t.close();
});

test("a dialog is shown again if its answer was lost or refused", async () => {
  const s = await open("confirm", { until: "dialog[open]" });
  const answer = async (/** @type {number} */ n) => {
    await s.page.getByRole("button", { name: "OK" }).click();
    await s.until(() => s.sent("do").length === n);
    await s.page.waitForSelector("dialog", { state: "detached" });
  };
  await answer(1);
  s.say({ t: "note", code: "HUMAN_IN_CONTROL", text: "somebody else has the wheel at this moment" });
  await s.page.waitForSelector("dialog[open]");
  await answer(2);
  s.heard.ws?.close();
  await s.page.waitForSelector("dialog[open]");
  await s.close();
});

test("a server's sign-in is sent and forgotten", async () => {
  const s = await open("auth", { until: "dialog[open]" });
  await s.page.locator("dialog").getByLabel("Name").fill("me");
  await s.page.locator("dialog").getByLabel("Password").fill("s3cret-y");
  await s.page.keyboard.press("Enter");
  await s.until(() => s.sent("do").length === 1);
  assert.deepEqual([s.sent("do")[0].username, s.sent("do")[0].password], ["me", "s3cret-y"]);
  assert.equal(await s.page.locator("input[type=password]:not(#fields *)").count(), 0);
  await s.close();
});

test("a file goes up when the page asks for one", async () => {
  const s = await open("file", { until: "dialog[open]" });
  await s.page.locator("#sheet-file").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("hello file") });
  await s.until(() => s.heard.uploads > 0);
  assert.equal(s.sent("do").length, 0, "an upload is no refusal");
  await s.close();
});

test("the end of it all lets go of what was typed and of the line", async () => {
  const s = await open("driving");
  await s.page.locator('#fields [data-kind="password"]').tap();
  await s.page.keyboard.type("s3cret-z");
  await s.until(() => s.sent("edit").length > 0);
  s.say({ t: "end", reason: "finished" });
  await s.page.waitForSelector("#curtain:not([hidden]) .badge");
  assert.equal(await s.page.locator("#fields > *").count(), 0);
  await s.until(() => s.heard.ws?.readyState === 3, "the line is closed");
  assert.equal(await s.page.evaluate(() => /** @type {HTMLElement} */ (document.querySelector("#app")).inert), true);
  await s.close();
});

test("the console asks before what cannot be undone, and says what it does", async () => {
  const context = await browser.newContext(/** @type {any} */ (phone));
  const page = await context.newPage();
  await page.goto(`${site.url}/console#t=console-token`);
  await page.waitForSelector(".ready");
  const heard = site.record("console");
  assert.equal(new URL(page.url()).hash, "");
  assert.deepEqual(heard.claims, [{ token: "console-token" }]);
  const sent = async (/** @type {number} */ n) => {
    for (const end = Date.now() + 10_000; heard.m.filter((m) => m.t === "do").length < n;) {
      assert.ok(Date.now() < end, "nothing was sent");
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(null))));
    }
    return heard.m.filter((m) => m.t === "do").at(-1);
  };
  await page.locator('[data-do="extend"]').first().click();
  assert.deepEqual(await sent(1), { t: "do", a: "extend", id: "hof_1", seq: 1, minutes: 15 });
  await page.locator('[data-do="move"]').click();
  assert.deepEqual(await sent(2), { t: "do", a: "move", id: "lnk_1", seq: 2, number: 47 });
  await page.locator('[data-do="abort"]').first().click();
  await page.waitForSelector('dialog[data-name="abort"]');
  await page.getByRole("button", { name: "Go back" }).click();
  assert.equal(heard.m.filter((m) => m.t === "do").length, 2);
  await page.locator('[data-do="approve"]').click();
  await page.locator("dialog .main").click();
  assert.equal((await sent(3)).a, "approve");
  heard.ws?.send(JSON.stringify({ t: "open", id: "x", url: "https://elsewhere.example/live/x" }));
  heard.ws?.send(JSON.stringify({ t: "open", id: "x", url: "/live/driving~console#t=abc" }));
  await page.waitForURL(/\/live\/driving~console$/);
  await context.close();
});

test("a press on the console counts, also while there is news", async () => {
  const context = await browser.newContext(laptop);
  const page = await context.newPage();
  await page.goto(`${site.url}/console#t=console-token`);
  await page.waitForSelector(".ready");
  const heard = site.record("console");
  const before = heard.m.length;
  await page.locator('[data-do="extend"]').first().hover();
  await page.mouse.down();
  heard.ws?.send(JSON.stringify({ ...consoleState(), troubles: ["There is news."] }));
  heard.ws?.send(JSON.stringify({ t: "note", seq: -1, ok: true, text: "All was told." }));
  await page.getByText("All was told.").waitFor();
  await page.mouse.up();
  await page.getByText("There is news.").waitFor();
  await page.getByText("Done.", { exact: true }).waitFor();
  assert.deepEqual(heard.m.slice(before).filter((m) => m.t === "do").map((m) => m.a), ["extend"]);
  await page.locator('[data-tab="devices"]').click();
  await page.waitForFunction(() => document.querySelector("#title")?.textContent === "Devices");
  await context.close();
});
