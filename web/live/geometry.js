// @ts-check
// Where a finger on the glass is on the page, and where a field of the page is
// on the glass. Pure: it knows numbers only, so that properties can be tested.
//
// Three planes, all in CSS pixels. The *stage* is the part of the glass that
// shows the picture. The *picture* is what a frame shows (its header's width and
// height). The *page* is what the remote browser takes input in: the picture
// without what is above the page (top), divided by the page's scale.

/** @typedef {{x: number, y: number}} Point */
/** @typedef {{width: number, height: number}} Size */
/** @typedef {Point & Size} Rect */
/** @typedef {{zoom: number, cx: number, cy: number}} View zoom over the resting size; the point of the picture in the middle of the stage. It keeps its place when the stage turns or shrinks. */
/** @typedef {{k: number, x: number, y: number}} Place stage px a picture px, and where the picture's corner lies on the stage */
/** @typedef {{width: number, height: number, scale: number, top: number}} Shot what a frame says of its geometry */

/** The largest that a picture px may be on the stage. */
export const maxScale = 5;

/** @param {number} v @param {number} lo @param {number} hi */
export const between = (v, lo, hi) => Math.min(Math.max(v, lo), hi);

/**
 * Stage px a picture px at rest: the whole picture, as large as it goes. rest is
 * the stage without a keyboard over it: a keyboard covers, it does not shrink.
 * @param {Size} rest @param {Size} picture
 */
export function baseScale(rest, picture) {
  const k = Math.min(rest.width / picture.width, rest.height / picture.height);
  return k > 0 && Number.isFinite(k) ? k : 1;
}

/** @param {Size} picture @returns {View} */
export const atRest = (picture) => ({ zoom: 1, cx: picture.width / 2, cy: picture.height / 2 });

/** Below this the text of a page is too small to read. */
export const legible = 0.6;

/**
 * How a page is first shown: all of its width. What is too small to read there is
 * opened where the fields are, as soon as they are known: see form.
 * @param {Size} stage @param {number} base @param {Size} picture @returns {View}
 */
export function opening(stage, base, picture) {
  return settle(atRest(picture), stage, base, picture);
}

/**
 * The nearest view that shows no more emptiness than it must.
 * @param {View} view @param {Size} stage @param {number} base @param {Size} picture @returns {View}
 */
export function settle(view, stage, base, picture) {
  const zoom = between(view.zoom, 1, Math.max(1, maxScale / base));
  const k = base * zoom;
  return { zoom, cx: middle(view.cx, stage.width / k, picture.width), cy: middle(view.cy, stage.height / k, picture.height) };
}

/** @param {number} c @param {number} seen @param {number} whole */
function middle(c, seen, whole) {
  return seen >= whole ? whole / 2 : between(c, seen / 2, whole - seen / 2);
}

/** @param {View} view @param {Size} stage @param {number} base @returns {Place} */
export function placeOf(view, stage, base) {
  const k = base * view.zoom;
  return { k, x: stage.width / 2 - view.cx * k, y: stage.height / 2 - view.cy * k };
}

/** @param {Point} p @param {Place} at @returns {Point} */
export const toPicture = (p, at) => ({ x: (p.x - at.x) / at.k, y: (p.y - at.y) / at.k });

/** @param {Point} p @param {Place} at @returns {Point} */
export const toStage = (p, at) => ({ x: p.x * at.k + at.x, y: p.y * at.k + at.y });

/** @param {Point} p @param {Shot} shot @returns {Point} */
export const toPage = (p, shot) => ({ x: p.x / shot.scale, y: (p.y - shot.top) / shot.scale });

/** @param {Point} p @param {Shot} shot @returns {Point} */
export const fromPage = (p, shot) => ({ x: p.x * shot.scale, y: p.y * shot.scale + shot.top });

/** @param {Point} p @param {Size} picture */
export const within = (p, picture) => p.x >= 0 && p.y >= 0 && p.x < picture.width && p.y < picture.height;

/**
 * The nearest point of the picture: a finger that slid off its edge is still held.
 * @param {Point} p @param {Size} picture @returns {Point}
 */
export const nearest = (p, picture) => ({ x: between(p.x, 0, picture.width - 1), y: between(p.y, 0, picture.height - 1) });

/**
 * Moves the picture by stage px. What the picture cannot go further is left over,
 * for the page to scroll by.
 * @param {View} view @param {Point} by @param {Size} stage @param {number} base @param {Size} picture
 * @returns {{view: View, left: Point}}
 */
export function pan(view, by, stage, base, picture) {
  const k = base * view.zoom;
  const next = settle({ zoom: view.zoom, cx: view.cx - by.x / k, cy: view.cy - by.y / k }, stage, base, picture);
  return { view: next, left: { x: by.x - (view.cx - next.cx) * k, y: by.y - (view.cy - next.cy) * k } };
}

/**
 * Zooms so that what was under one point of the stage is under another.
 * @param {View} view @param {number} factor @param {Point} from @param {Point} to
 * @param {Size} stage @param {number} base @param {Size} picture @returns {View}
 */
export function zoomAbout(view, factor, from, to, stage, base, picture) {
  const under = toPicture(from, placeOf(view, stage, base));
  const zoom = between(view.zoom * factor, 1, Math.max(1, maxScale / base));
  const k = base * zoom;
  return settle({ zoom, cx: under.x - (to.x - stage.width / 2) / k, cy: under.y - (to.y - stage.height / 2) / k }, stage, base, picture);
}

/**
 * What two fingers do: both points of the picture stay under them.
 * @param {View} view @param {[Point, Point]} from @param {[Point, Point]} to
 * @param {Size} stage @param {number} base @param {Size} picture @returns {View}
 */
export function pinch(view, from, to, stage, base, picture) {
  const apart = (/** @type {[Point, Point]} */ f) => Math.hypot(f[0].x - f[1].x, f[0].y - f[1].y);
  const mid = (/** @type {[Point, Point]} */ f) => ({ x: (f[0].x + f[1].x) / 2, y: (f[0].y + f[1].y) / 2 });
  const before = apart(from);
  return zoomAbout(view, before > 1 ? apart(to) / before : 1, mid(from), mid(to), stage, base, picture);
}

/** The least rectangle around some; null around none. @param {Rect[]} rects @returns {Rect | null} */
export function around(rects) {
  if (!rects.length) return null;
  const x = Math.min(...rects.map((r) => r.x)), y = Math.min(...rects.map((r) => r.y));
  return { x, y, width: Math.max(...rects.map((r) => r.x + r.width)) - x, height: Math.max(...rects.map((r) => r.y + r.height)) - y };
}

/**
 * A view in which a field can be read and is wholly to be seen, changed no more
 * than that takes.
 * @param {View} view @param {Rect} rect of the picture @param {number} legible the least stage px a picture px
 * @param {Size} stage @param {number} base @param {Size} picture @returns {View}
 */
export function reveal(view, rect, legible, stage, base, picture) {
  const margin = 24;
  const widest = Math.max(base, stage.width / (rect.width + 2 * margin)); // never wider than the stage
  const k = Math.min(Math.max(base * view.zoom, Math.min(legible, widest)), maxScale);
  const seenX = stage.width / k, seenY = stage.height / k;
  const hold = (/** @type {number} */ c, /** @type {number} */ seen, /** @type {number} */ lo, /** @type {number} */ size) =>
    size + 2 * margin >= seen ? lo + Math.min(size, seen) / 2 : between(c, lo + size + margin - seen / 2, lo - margin + seen / 2);
  return settle({
    zoom: k / base,
    cx: hold(view.cx, seenX, rect.x, rect.width),
    cy: hold(view.cy, seenY, rect.y, rect.height),
  }, stage, base, picture);
}
