// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import * as g from "../live/geometry.js";
import * as aim from "../live/aim.js";
import { property } from "./chance.js";

/** @typedef {import("./chance.js").Chance} Chance */

/** A picture on a stage, zoomed and moved as it may be. @param {Chance} c */
function scene(c) {
  const rest = { width: c.int(280, 1600), height: c.int(200, 1200) };
  const covered = c.one([true, false]);
  const stage = covered ? { width: rest.width, height: Math.max(80, rest.height - c.int(0, 400)) } : rest;
  const shot = { width: c.int(200, 2000), height: c.int(200, 2000), scale: c.one([1, 0.4, 1.5, 2.625, 0.9]), top: c.one([0, 0, 56]) };
  const base = g.baseScale(rest, shot);
  const view = g.settle({ zoom: c.real(0.2, 8), cx: c.real(-500, 2500), cy: c.real(-500, 2500) }, stage, base, shot);
  return { rest, stage, shot, base, view };
}

const near = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ what, by = 1e-6) =>
  assert.ok(Math.abs(a - b) <= by * Math.max(1, Math.abs(a), Math.abs(b)), `${what}: ${a} is not ${b}`);

test("a point of the page comes back to itself through picture and stage", property((c) => {
  const { stage, shot, base, view } = scene(c);
  const p = { x: c.real(0, 2000), y: c.real(0, 2000) };
  const at = g.placeOf(view, stage, base);
  const back = g.toPage(g.toPicture(g.toStage(g.fromPage(p, shot), at), at), shot);
  near(back.x, p.x, "x");
  near(back.y, p.y, "y");
}));

test("at rest the whole picture is seen, with its aspect, as large as it goes", property((c) => {
  const { rest, shot, base } = scene(c);
  const at = g.placeOf(g.settle(g.atRest(shot), rest, base, shot), rest, base);
  const a = g.toStage({ x: 0, y: 0 }, at), b = g.toStage({ x: shot.width, y: shot.height }, at);
  assert.ok(a.x >= -1e-6 && a.y >= -1e-6 && b.x <= rest.width + 1e-6 && b.y <= rest.height + 1e-6, "it sticks out");
  near((b.x - a.x) / (b.y - a.y), shot.width / shot.height, "aspect");
  near(Math.max((b.x - a.x) / rest.width, (b.y - a.y) / rest.height), 1, "fill");
}));

test("a page opens whole", property((c) => {
  const { rest, shot, base } = scene(c);
  const view = g.opening(rest, base, shot);
  assert.deepEqual(view, g.settle(view, rest, base, shot));
  near(view.zoom, 1, "whole");
}));

test("what is to be filled in opens so that it can be read, from its top left", property((c) => {
  const { rest, shot, base } = scene(c);
  const part = { x: c.real(0, shot.width * 0.7), y: c.real(0, shot.height * 0.7), width: c.real(20, shot.width * 0.3), height: c.real(20, shot.height * 0.3), font: c.real(8, 24) };
  const view = aim.form(part, rest, base, shot);
  assert.deepEqual(view, g.settle(view, rest, base, shot));
  const at = g.placeOf(view, rest, base), corner = g.toStage(part, at);
  const k = base * view.zoom;
  assert.ok(k * part.font >= Math.min(aim.readable, g.maxScale * part.font, 1.5 * part.font) - 1e-6 || k >= g.maxScale - 1e-6, `text of ${k * part.font} px`);
  assert.ok(corner.x >= -1e-6 && corner.x <= rest.width + 1e-6 && corner.y >= -1e-6 && corner.y <= rest.height + 1e-6, "it begins outside");
}));

test("a settled view shows no emptiness that it need not, and settling it again changes nothing", property((c) => {
  const { stage, shot, base, view } = scene(c);
  const again = g.settle(view, stage, base, shot);
  near(again.cx, view.cx, "cx");
  near(again.cy, view.cy, "cy");
  const { k, x, y } = g.placeOf(view, stage, base);
  for (const [start, size, room] of [[x, shot.width * k, stage.width], [y, shot.height * k, stage.height]]) {
    if (size >= room) assert.ok(start <= 1e-6 && start + size >= room - 1e-6, "a gap beside a picture that fills");
    else near(start, (room - size) / 2, "not in the middle");
  }
}));

test("two fingers hold the points of the picture that they touch, until an edge is reached", property((c) => {
  const { stage, shot, base, view } = scene(c);
  const f = () => ({ x: c.real(0, stage.width), y: c.real(0, stage.height) });
  /** @type {[g.Point, g.Point]} */ const from = [f(), f()];
  /** @type {[g.Point, g.Point]} */ const to = [f(), f()];
  const next = g.pinch(view, from, to, stage, base, shot);
  const mid = (/** @type {[g.Point, g.Point]} */ v) => ({ x: (v[0].x + v[1].x) / 2, y: (v[0].y + v[1].y) / 2 });
  const before = g.toPicture(mid(from), g.placeOf(view, stage, base));
  const after = g.toPicture(mid(to), g.placeOf(next, stage, base));
  // Held on an axis, unless the view had to stop at an edge or centre there.
  const k = base * next.zoom;
  const free = (/** @type {number} */ centre, /** @type {number} */ room, /** @type {number} */ whole) => room / k < whole && centre > room / k / 2 + 1e-6 && centre < whole - room / k / 2 - 1e-6;
  if (free(next.cx, stage.width, shot.width)) near(after.x, before.x, "x under the fingers");
  if (free(next.cy, stage.height, shot.height)) near(after.y, before.y, "y under the fingers");
  assert.ok(next.zoom >= 1 && base * next.zoom <= Math.max(g.maxScale, base) + 1e-9);
}));

test("what panning cannot move is left over to the last pixel", property((c) => {
  const { stage, shot, base, view } = scene(c);
  const by = { x: c.real(-900, 900), y: c.real(-900, 900) };
  const { view: next, left } = g.pan(view, by, stage, base, shot);
  const was = g.placeOf(view, stage, base), is = g.placeOf(next, stage, base);
  near(is.x - was.x + left.x, by.x, "x");
  near(is.y - was.y + left.y, by.y, "y");
  assert.ok(left.x * by.x >= -1e-6 && left.y * by.y >= -1e-6, "left over the wrong way");
}));

test("a field that has the focus is wholly on the stage, above the keyboard", property((c) => {
  const { stage, shot, base, view } = scene(c);
  const rect = { x: c.real(0, shot.width - 60), y: c.real(0, shot.height - 30), width: c.real(20, 60), height: c.real(10, 30) };
  const next = g.reveal(view, rect, c.real(0.2, 2), stage, base, shot);
  const at = g.placeOf(next, stage, base);
  const a = g.toStage(rect, at), b = g.toStage({ x: rect.x + rect.width, y: rect.y + rect.height }, at);
  if (b.x - a.x <= stage.width) assert.ok(a.x >= -1e-6 && b.x <= stage.width + 1e-6, `x ${a.x}…${b.x} of ${stage.width}`);
  if (b.y - a.y <= stage.height) assert.ok(a.y >= -1e-6 && b.y <= stage.height + 1e-6, `y ${a.y}…${b.y} of ${stage.height}`);
}));

test("what is around some rectangles holds each and touches the outermost", property((c) => {
  const rects = Array.from({ length: c.int(1, 5) }, () => ({ x: c.real(-50, 900), y: c.real(-50, 900), width: c.real(0, 300), height: c.real(0, 300) }));
  const box = g.around(rects);
  assert.ok(box);
  for (const r of rects) assert.ok(r.x >= box.x && r.y >= box.y && r.x + r.width <= box.x + box.width + 1e-9 && r.y + r.height <= box.y + box.height + 1e-9);
  assert.ok(rects.some((r) => r.x === box.x) && rects.some((r) => r.y === box.y));
  assert.equal(g.around([]), null);
}));

test("turning the phone and back shows the same place", property((c) => {
  const { rest, shot, base, view } = scene(c);
  const seen = g.settle(view, rest, base, shot);
  const turned = { width: rest.height, height: rest.width };
  const there = g.settle(seen, turned, g.baseScale(turned, shot), shot);
  assert.ok(there.cx >= 0 && there.cx <= shot.width && there.cy >= 0 && there.cy <= shot.height);
  // What was in the middle is still seen.
  const at = g.toStage({ x: seen.cx, y: seen.cy }, g.placeOf(there, turned, g.baseScale(turned, shot)));
  assert.ok(at.x >= -1e-6 && at.y >= -1e-6 && at.x <= turned.width + 1e-6 && at.y <= turned.height + 1e-6);
}));

test("a finger that slides off the page is held at its edge", property((c) => {
  const { shot } = scene(c);
  const p = g.nearest({ x: c.real(-5000, 5000), y: c.real(-5000, 5000) }, shot);
  assert.ok(g.within(p, shot));
}));
