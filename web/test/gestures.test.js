// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { Hands } from "../live/gestures.js";
import { property } from "./chance.js";

/** Hands over a stage of 400 × 800 whose points are the page's, with time in hand. @param {object} [more] */
function hands(more = {}) {
  /** @type {any[]} */ const sent = [];
  /** @type {any[]} */ const felt = [];
  /** @type {Map<number, {at: number, then: Function}>} */ const timers = new Map();
  let now = 0, next = 1;
  const o = { fingers: false, drives: true, small: false, zoomed: 0, pinched: 0, room: 0, ...more };
  const h = new Hands({
    fingers: () => o.fingers, drives: () => o.drives, small: () => o.small,
    page: (at, hold) => hold || (at.x >= 0 && at.x < 400 && at.y >= 0 && at.y < 800) ? { x: Math.min(Math.max(at.x, 0), 399), y: Math.min(Math.max(at.y, 0), 799) } : null,
    pan: (by) => {
      const y = Math.sign(by.y) * Math.min(Math.abs(by.y), o.room);
      o.room -= Math.abs(y);
      return { x: by.x, y: by.y - y };
    },
    pinch: () => { o.pinched++; }, zoom: () => { o.zoomed++; },
    send: (m) => sent.push(m), feel: (w) => felt.push(w),
  }, {
    after: (ms, then) => { timers.set(next, { at: now + ms, then }); return next++; }, stop: (id) => void timers.delete(id),
    frame: (then) => { timers.set(next, { at: now + 16, then }); return next++; }, unframe: (id) => void timers.delete(id),
  });
  /** Lets time pass. @param {number} ms */
  const pass = (ms) => {
    const end = now + ms;
    for (;;) {
      const due = [...timers].filter(([, t]) => t.at <= end).sort((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      timers.delete(due[0]);
      now = due[1].at;
      due[1].then(now);
    }
    now = end;
  };
  const e = (/** @type {any} */ kind, /** @type {number} */ x, /** @type {number} */ y, id = 1, rest = {}) => h.handle({ kind, id, x, y, t: now, mouse: false, ...rest });
  return { h, o, sent, felt, pass, e, timers, brief: () => sent.map((m) => m.t === "wheel" ? "wheel" : `${m.k}${m.f < 0 ? ` ${m.b || "none"}` : " finger"}`).join(", ") };
}

test("a tap on a page for mice is one click where the finger came down", () => {
  const s = hands();
  s.e("down", 100, 200);
  s.pass(50);
  s.e("move", 103, 202);
  s.e("up", 103, 202);
  assert.deepEqual(s.sent, [{ t: "ptr", k: "tap", x: 100, y: 200, f: -1, b: "left", c: 1, m: 0 }]);
});

test("the mouse comes to where a finger rests, and waits for it there", () => {
  const s = hands();
  s.e("down", 100, 200);
  s.pass(60);
  assert.deepEqual(s.sent, [{ t: "ptr", k: "move", x: 100, y: 200, f: -1, b: "", c: 0, m: 0 }]);
  s.e("move", 103, 202);
  s.e("up", 103, 202);
  assert.equal(s.brief(), "move none, tap left");
  assert.deepEqual([s.sent[1].x, s.sent[1].y], [100, 200]);
});

test("no mouse comes to a finger that scrolls, or pinches", () => {
  const stroke = hands();
  stroke.e("down", 200, 500);
  stroke.pass(50);
  stroke.e("move", 200, 480);
  stroke.pass(500);
  stroke.e("up", 200, 480);
  assert.equal(stroke.brief(), "wheel");
  const two = hands();
  two.e("down", 100, 100, 1);
  two.pass(50);
  two.e("down", 200, 200, 2);
  two.pass(500);
  assert.equal(two.brief(), "");
});

test("a tap on a page for fingers is that finger, at once", () => {
  const s = hands({ fingers: true });
  s.e("down", 100, 200);
  assert.deepEqual(s.sent[0], { t: "ptr", k: "down", x: 100, y: 200, f: 0, m: 0, fingers: [{ f: 0, x: 100, y: 200 }] });
  s.e("up", 100, 200);
  assert.deepEqual(s.sent[1].fingers, []);
});

test("many moves in one frame are told as the newest", () => {
  const s = hands({ fingers: true });
  s.e("down", 0, 0);
  for (let i = 1; i <= 50; i++) s.e("move", i, i);
  s.pass(16);
  s.e("up", 50, 50);
  assert.equal(s.brief(), "down finger, move finger, up finger");
  assert.equal(s.sent[1].x, 50);
});

test("a stroke scrolls the page, and goes on by itself after a quick one", () => {
  const s = hands();
  s.e("down", 200, 500);
  for (let y = 490; y >= 300; y -= 10) { s.pass(8); s.e("move", 200, y); }
  s.e("up", 200, 300);
  const before = s.sent.length;
  assert.equal(s.sent.reduce((sum, m) => sum + m.dy, 0), 200, "the page moves as far as the finger");
  s.pass(3000);
  assert.ok(s.sent.length > before + 10, "no glide");
  assert.ok(s.sent.every((m) => m.t === "wheel" && m.x === 200 && m.y === 500));
  assert.equal(s.timers.size, 0, "the glide ends");
});

test("a glide ends at a touch", () => {
  const s = hands();
  s.e("down", 200, 500);
  for (let y = 490; y >= 300; y -= 10) { s.pass(8); s.e("move", 200, y); }
  s.e("up", 200, 300);
  s.pass(100);
  s.e("down", 10, 10);
  const n = s.sent.length;
  s.pass(300);
  assert.equal(s.sent.length, n);
});

test("a view that is zoomed moves first, and the page by what is left", () => {
  const s = hands({ room: 60 });
  s.e("down", 200, 500);
  s.e("move", 200, 400);
  s.pass(20);
  assert.equal(s.sent.reduce((sum, m) => sum + m.dy, 0), 40);
});

test("a long press is the right button; moved, it is a drag", () => {
  const press = hands();
  press.e("down", 50, 60);
  press.pass(500);
  press.e("up", 50, 60);
  assert.equal(press.brief(), "move none, tap right");
  assert.deepEqual(press.felt, ["held"]);
  const drag = hands();
  drag.e("down", 50, 60);
  drag.pass(500);
  drag.e("move", 150, 60);
  drag.pass(20);
  drag.e("up", 180, 60);
  assert.equal(drag.brief(), "move none, move none, down left, move left, move left, up left");
  assert.deepEqual([drag.sent[2].x, drag.sent.at(-1).x], [50, 180]);
});

test("a second finger takes the first one off the page and pinches the view", () => {
  const s = hands({ fingers: true });
  s.e("down", 100, 100, 1);
  s.e("down", 200, 200, 2);
  s.e("move", 250, 250, 2);
  s.e("up", 250, 250, 2);
  s.e("move", 300, 300, 1);
  s.e("up", 300, 300, 1);
  assert.equal(s.brief(), "down finger, cancel finger");
  assert.equal(s.o.pinched, 1);
});

test("two taps come nearer where the page is too small to read, and are two taps elsewhere", () => {
  for (const [small, taps, zoomed] of /** @type {const} */ ([[true, 1, 1], [false, 2, 0]])) {
    const s = hands({ small });
    for (let i = 0; i < 2; i++) { s.e("down", 90, 90); s.pass(40); s.e("up", 90, 90); s.pass(80); }
    assert.equal(s.sent.filter((m) => m.k === "tap").length, taps);
    assert.equal(s.o.zoomed, zoomed);
  }
});

test("whoever only watches sends nothing, and is told why", () => {
  const s = hands({ drives: false });
  s.e("down", 10, 10); s.e("up", 10, 10);
  s.e("down", 10, 300); s.e("move", 10, 100); s.pass(20); s.e("up", 10, 100);
  s.h.handle({ kind: "down", id: 9, mouse: true, x: 5, y: 5, t: 0, button: 0 });
  assert.deepEqual(s.sent, []);
  assert.deepEqual(s.felt, ["refused", "refused"]);
});

test("a touch beside the picture is no touch of the page", () => {
  const s = hands();
  s.e("down", 500, 10); s.e("up", 500, 10);
  assert.deepEqual(s.sent, []);
});

test("a mouse counts its clicks and keeps its button while it drags", () => {
  const s = hands();
  const mouse = (/** @type {any} */ kind, /** @type {number} */ x, /** @type {number} */ t, button = 0) => s.h.handle({ kind, id: 9, mouse: true, x, y: 5, t, button, m: 8 });
  mouse("down", 5, 0); mouse("up", 5, 10); mouse("down", 5, 100); mouse("up", 5, 110);
  assert.deepEqual(s.sent.map((m) => m.c), [1, 1, 2, 2]);
  mouse("down", 90, 1000, 2); mouse("move", 95, 1010); s.pass(20); mouse("up", 99, 1020, 2);
  assert.deepEqual(s.sent.slice(4).map((m) => `${m.k} ${m.b} ${m.x}`), ["down right 90", "move right 95", "up right 99"]);
  assert.ok(s.sent.every((m) => m.m === 8 && m.f === -1));
});

test("whatever hands do, nothing stays pressed", property((c) => {
  const s = hands({ fingers: c.one([true, false]), small: c.one([true, false]), room: c.int(0, 50) });
  /** @type {Set<number>} */ const down = new Set();
  for (let i = 0; i < 30; i++) {
    const id = c.int(1, 3), x = c.int(-50, 450), y = c.int(-50, 850);
    const kind = !down.has(id) ? "down" : c.one(["move", "move", "up", "cancel"]);
    if (kind === "down") down.add(id);
    if (kind === "up" || kind === "cancel") down.delete(id);
    s.e(kind, x, y, id);
    if (c.int(0, 3) === 0) s.pass(c.int(0, 600));
    if (c.int(0, 15) === 0) s.h.cancel();
    if (c.int(0, 20) === 0) s.o.drives = !s.o.drives;
  }
  for (const id of down) s.e(c.one(["up", "cancel"]), 10, 10, id);
  s.pass(20_000);
  let finger = 0, left = 0, right = 0;
  for (const m of s.sent) {
    if (m.t !== "ptr" || m.k === "move" || m.k === "tap") continue;
    const by = m.k === "down" ? 1 : -1;
    if (m.f === 0) finger += by;
    else if (m.b === "left") left += by;
    else right += by;
    assert.ok(finger >= 0 && finger <= 1 && left >= 0 && left <= 1 && right >= 0 && right <= 1, `out of order at ${JSON.stringify(m)}`);
    assert.ok(Number.isFinite(m.x) && Number.isFinite(m.y));
  }
  assert.deepEqual([finger, left, right], [0, 0, 0]);
  assert.equal(s.timers.size, 0);
}));
