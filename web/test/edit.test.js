// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, change, Ledger, strokes, unfinished } from "../live/edit.js";
import { property } from "./chance.js";

test("a change turns the one text into the other", property((c) => {
  const base = c.text(12);
  const cut = c.int(0, base.length);
  const value = c.one([c.text(12), base.slice(0, cut) + c.text(3) + base.slice(c.int(cut, base.length))]);
  const d = change(base, value, c.one([undefined, c.int(0, value.length)]));
  assert.equal(apply(base, d), value);
  assert.ok(d.at >= 0 && d.removed >= 0 && d.at + d.removed <= base.length);
}));

test("a change never begins or ends inside an emoji", property((c) => {
  const base = Array.from(c.text(8)), value = base.slice();
  value.splice(c.int(0, base.length), c.int(0, 2), ...Array.from(c.text(2)));
  const d = change(base.join(""), value.join(""), value.join("").length);
  assert.ok(d.inserted.isWellFormed(), `${JSON.stringify(d.inserted)} is half an emoji`);
  assert.ok(base.join("").slice(d.at, d.at + d.removed).isWellFormed(), "erases half an emoji");
}));

test("typing at the caret is told as typing at the caret", () => {
  for (const [base, value, caret, want] of /** @type {const} */ ([
    ["aa", "aaa", 1, { at: 0, removed: 0, inserted: "a" }],
    ["aa", "aaa", 3, { at: 2, removed: 0, inserted: "a" }],
    ["teh ", "the ", 4, { at: 1, removed: 2, inserted: "he" }],
    ["aaa", "aa", 2, { at: 2, removed: 1, inserted: "" }],
    ["👍", "👍🏽", 4, { at: 2, removed: 0, inserted: "🏽" }],
    ["", "你好", 2, { at: 0, removed: 0, inserted: "你好" }],
  ])) assert.deepEqual(change(base, value, caret), want, `${base} → ${value}`);
});

test("a text is gone after as many strokes as it has characters", () => {
  assert.equal(strokes("a👍你"), 3);
  assert.equal(strokes(""), 0);
});

test("what stands for Chinese, Japanese or Korean waits until it is finished; other words do not", () => {
  assert.equal(unfinished("ni", ["zh-CN"]), true);
  assert.equal(unfinished("に", ["en"]), true);
  assert.equal(unfinished("한", ["en"]), true);
  assert.equal(unfinished("hello", ["en-GB", "de"]), false);
  assert.equal(unfinished("مرحبا", ["ar"]), false);
});

test("however slow the line, phone and page agree in the end", property((c) => {
  // The remote field takes in edits in order and may change them, as a mask does.
  let seq = 0;
  let local = c.text(4);
  let remote = local;
  const mask = c.one([(/** @type {string} */ s) => s, (/** @type {string} */ s) => Array.from(s).slice(0, 6).join(""), (/** @type {string} */ s) => s.toUpperCase()]);
  const ledger = new Ledger("f", local);
  /** @type {any[]} */ const out = [];
  /** @type {any[]} */ const back = [];
  const arrive = () => {
    const e = out.shift();
    if (!e) return;
    assert.equal(typeof e.base, "string");
    remote = mask(apply(remote, change(e.base, e.value, e.selection[1])));
    if (mask(e.value) !== remote) remote = mask(e.value);
    back.push({ value: remote, seq: e.seq });
  };
  const hear = () => {
    const m = back.shift();
    const shown = m ? ledger.hear(m.value, undefined, 0, m.seq) : null;
    if (shown !== null) local = shown;
  };
  for (let i = 0; i < 20; i++) {
    const step = c.int(0, 3);
    if (step <= 1) {
      local = c.one([local + c.text(2), local.slice(0, -1), c.text(5)]);
      const e = ledger.tell(local, [local.length, local.length], () => ++seq);
      if (e) out.push(e);
    } else if (step === 2) arrive();
    else hear();
  }
  while (out.length) arrive();
  while (back.length) hear();
  assert.equal(local, remote);
  assert.equal(ledger.pending, false);
}));

test("a masked field is known by its length alone, and the first edit replaces it", () => {
  const l = new Ledger("p", undefined, 3);
  assert.equal(l.hear(undefined, 3, 0), null);
  assert.equal(l.hear(undefined, 5, 0), null, "it is not known either way");
  assert.equal(l.tell("", [0, 0], () => 9), null, "a tap into it tells nothing");
  const e = l.tell("x", [1, 1], () => 1);
  assert.equal(e?.base, null);
  assert.equal(l.hear(undefined, 2, 0), null, "an older report while an edit is on its way");
  assert.equal(l.hear(undefined, 1, 0, 1), null, "the same length: what was typed stays");
  assert.equal(l.tell("xy", [2, 2], () => 2)?.base, "x");
  assert.equal(l.hear(undefined, 1, 0, 2), "", "the page cut it: nobody knows what stands there");
  assert.equal(l.tell("z", [1, 1], () => 3)?.base, null);
  assert.equal(l.hear(undefined, 0, 0, 3), "", "the page emptied it");
  assert.equal(l.tell("q", [1, 1], () => 4)?.base, "");
});

test("a report that was read before an edit and comes after its answer says nothing", () => {
  for (const secret of [true, false]) {
    const was = (/** @type {string} */ v) => secret ? undefined : v;
    const l = new Ledger("p", was(""), 0);
    l.tell("p", [1, 1], () => 1);
    assert.equal(l.hear(was("p"), 1, 7, 1), null);
    assert.equal(l.hear(was(""), 0, 7), null, "older");
    assert.equal(l.tell("pa", [2, 2], () => 2)?.base, "p", "what was typed stays");
    assert.equal(l.hear(was("pa"), 2, 8, 2), null);
    assert.equal(l.hear(was("p"), 1, 8), null, "older again");
    assert.equal(l.hear(was(""), 0, 9), "", "the page emptied it afterwards");
  }
});

test("a box of a code keeps its character, whenever the next one is typed", () => {
  const l = new Ledger("b", undefined, 0, true);
  l.tell("4", [1, 1], () => 1);
  assert.equal(l.tell("42", [2, 2], () => 2)?.base, "4");
  assert.equal(l.hear(undefined, 1, 0, 1), null, "an older answer");
  assert.equal(l.hear(undefined, 1, 0, 2), "4", "the second went on to the next box");
  assert.equal(l.tell("48", [2, 2], () => 3)?.base, "4", "and so does the third");
  const next = new Ledger("c", undefined, 0, true);
  assert.equal(next.hear(undefined, 1, 0), null, "filled from the one before");
  assert.equal(next.tell("9", [1, 1], () => 1)?.base, "", "typed when it was thought empty");
  const again = new Ledger("d", undefined, 0, true);
  again.hear(undefined, 1, 0);
  again.visit(1);
  assert.equal(again.tell("9", [1, 1], () => 1)?.base, null, "a person came back to it to replace it");
});

test("nothing is told twice", () => {
  const l = new Ledger("f", "a");
  let n = 0;
  assert.ok(l.tell("ab", [2, 2], () => ++n));
  assert.equal(l.tell("ab", [2, 2], () => ++n), null);
  assert.ok(l.tell("ab", [1, 1], () => ++n), "a moved caret is something new");
  assert.equal(n, 2);
});
