// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { standingOf } from "../assets/claim.js";
import { ago, hostParts, left, leftAloud, sentence, want } from "../assets/words.js";
import { headerBytes, readFrame } from "../live/frame.js";
import { ask, screenOf } from "../live/screen.js";
import { chance, property } from "./chance.js";

/** @type {import("../live/screen.js").Known} */
const live = { line: "live", standing: "in", online: true, framed: true, asked: false, state: { driver: "you", can_drive: true, handoff: { attempts: 1, reason: "login" } } };
const also = (/** @type {object} */ more) => ({ ...live, ...more });
const state = (/** @type {object} */ more) => also({ state: { ...live.state, ...more } });
const handoff = (/** @type {object} */ more) => state({ handoff: { ...live.state.handoff, ...more } });

for (const [name, known, want] of /** @type {Array<[string, import("../live/screen.js").Known, object]>} */ ([
  ["before anything is known it opens", also({ line: "claiming", standing: "", framed: false, state: null }), { curtain: "Opening the browser", bar: "none" }],
  ["offline before the first picture says so", also({ line: "lost", online: false, framed: false, state: null }), { curtain: "You are offline", bar: "none" }],
  ["a second device shows its number", also({ standing: "waiting", number: 7, framed: false, state: null }), { curtain: "Is this you?", bar: "none" }],
  ["a link moved away from a live page asks for the number", also({ line: "lost", standing: "waiting", number: 7 }), { curtain: "Is this you?", bar: "none" }],
  ["an expired link says so", also({ standing: "expired", framed: false, state: null }), { curtain: "This link has expired", bar: "none" }],
  ["no credential sends to the message", also({ standing: "unknown", framed: false, state: null }), { curtain: "Open it from your message", bar: "none" }],
  ["you drive", live, { curtain: null, bar: "you", banner: null, dim: false }],
  ["the agent drives", state({ driver: "agent", can_drive: false, handoff: null }), { curtain: null, bar: "watch", banner: null }],
  ["a link to watch only watches", state({ can_drive: false }), { curtain: null, bar: "watch" }],
  ["nobody has touched it yet", state({ driver: "nobody" }), { curtain: null, bar: "you" }],
  ["somebody else is at it: the door decides who may", state({ driver: "other" }), { curtain: null, bar: "you" }],
  ["a device that waits and has lost its number", also({ standing: "waiting", framed: false, state: null }), { curtain: "Open on another device" }],
  ["a broken line keeps the place", also({ line: "lost" }), { curtain: null, dim: true, bar: "you", banner: "Reconnecting" }],
  ["a phone without a network keeps the place", also({ line: "lost", online: false }), { curtain: null, dim: true, banner: "You are offline" }],
  ["a broken line says so before anything else", also({ line: "lost", asked: true }), { banner: "Reconnecting" }],
  ["a countdown", handoff({ countdown_ms: 5000 }), { banner: "Looks done" }],
  ["a countdown that is over is none", handoff({ countdown_ms: 0 }), { banner: null }],
  ["asked again", handoff({ attempts: 2 }), { banner: "Not done yet" }],
  ["done was said", also({ asked: true }), { banner: "Checking" }],
  ["a crashed page", state({ page: { crashed: true } }), { banner: "This page has crashed" }],
  ["a parked one", handoff({ parked: true }), { curtain: "Kept for later" }],
  ...["finished", "cancelled", "timed_out", "parked", "stopped", "revoked", "expired", "moved"].map((end) => /** @type {[string, any, object]} */ (
    [`${end} is an end`, also({ line: "ended", end }), { bar: "none", banner: null, dim: false }])),
  ["an end nobody has heard of is an end", also({ line: "ended", end: "whatever" }), { curtain: "The browser is closed" }],
])) {
  test(`screen: ${name}`, () => {
    const got = screenOf(known);
    const seen = { ...got, curtain: got.curtain?.title ?? null, banner: got.banner?.title ?? null };
    for (const [k, v] of Object.entries(want)) assert.deepEqual(/** @type {any} */ (seen)[k], v, k);
    if (known.line === "ended") assert.ok(got.curtain?.text);
  });
}

test("the ends have each their own words", () => {
  const titles = ["finished", "cancelled", "timed_out", "parked", "stopped", "revoked", "expired", "moved"].map((end) => screenOf(also({ line: "ended", end })).curtain?.title);
  assert.equal(new Set(titles).size, titles.length);
});

test("the header says what is wanted", () => {
  assert.deepEqual(ask({ handoff: { reason: "login", site: "Bank", instruction: "please" } }), { title: "Sign in to Bank", text: "please" });
  assert.equal(ask({ driver: "agent" }).title, "The agent is driving");
  assert.equal(want("nonsense"), "The agent needs you");
});

test("a claim's answer says how the device stands", () => {
  for (const [status, standing] of /** @type {const} */ ([[200, "in"], [409, "waiting"], [410, "expired"], [404, "expired"], [401, "unknown"], [403, "unknown"], [429, "slow"], [500, "offline"], [502, "offline"]])) {
    assert.equal(standingOf(status), standing);
  }
});

test("the part of an address that says whose it is stands out, and nothing else", () => {
  for (const [origin, registrable, parts] of /** @type {const} */ ([
    ["https://login.bank.example", "bank.example", ["login.", "bank.example", ""]],
    ["https://bank.example:8443", "bank.example", ["", "bank.example", ":8443"]],
    ["https://bank.example.evil.test", "evil.test", ["bank.example.", "evil.test", ""]],
    ["https://notbank.example", "bank.example", ["", "notbank.example", ""]],
    ["http://127.0.0.1:80", "", ["", "127.0.0.1", ":80"]],
  ])) assert.deepEqual(hostParts(origin, registrable), parts);
});

test("a failure is said in a sentence", () => {
  assert.equal(sentence("the agent drives now", "Take over first."), "The agent drives now. Take over first.");
  assert.equal(sentence("Done."), "Done.");
  assert.equal(sentence(), "");
});

test("time is said shortly", () => {
  assert.equal(left(582_000), "9:42");
  assert.equal(left(-5), "0:00");
  assert.equal(left(3_600_000 * 2 + 60_000 * 3), "2 h 03");
  assert.equal(leftAloud(30_000), "less than a minute left");
  assert.equal(ago(null, 0), "never");
  const now = Date.parse("2026-05-10T12:00:00Z");
  assert.equal(ago("2026-05-10T11:59:50Z", now), "now");
  assert.equal(ago("2026-05-10T11:15:00Z", now), "45 min ago");
  assert.equal(ago("2026-05-09T10:00:00Z", now), "yesterday");
});

test("a frame is read as it was written", () => {
  const b = Buffer.alloc(headerBytes + 3);
  b.set([1, 3], 0);
  b.writeUInt16BE(2, 2);
  b.writeUInt32BE(70_000, 4);
  [390, 844, 1.5, 56, 10, 20].forEach((v, i) => b.writeFloatBE(v, 8 + 4 * i));
  b.writeUInt32BE(12, 32);
  const f = readFrame(b.buffer.slice(b.byteOffset, b.byteOffset + b.length));
  assert.deepEqual({ ...f, jpeg: f?.jpeg.size }, { sharp: true, first: true, tab: 2, number: 70_000, width: 390, height: 844, scale: 1.5, top: 56, scrollX: 10, scrollY: 20, age: 12, sent: 0, more: false, jpeg: 3 });
});

test("what is no frame is refused, whatever the bytes", property((c) => {
  const b = new Uint8Array(c.int(0, 60)).map(() => c.int(0, 255));
  const f = readFrame(b.buffer);
  if (f) assert.ok(b[0] === 1 && f.width > 0 && f.height > 0 && f.scale > 0 && Number.isFinite(f.width + f.height + f.scale + f.top));
}));

test("chance is the same for a seed", () => assert.equal(chance(7).real(0, 1), chance(7).real(0, 1)));
