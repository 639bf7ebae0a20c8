// @ts-check
// Where a page opens that is too small to be read as a whole. Pure. Fetched after
// the first picture.

import { maxScale, settle } from "./geometry.js";

/** @typedef {import("./geometry.js").Rect} Rect */
/** @typedef {import("./geometry.js").Size} Size */
/** @typedef {import("./geometry.js").View} View */

/** How large text must be on the glass to be read, in CSS px. */
export const readable = 11;

/**
 * A view of the part of a page that is to be filled in: as much of it as can be read
 * at once, from its top, and its labels before what lies to their right.
 * @param {Rect & {font: number}} part of the picture, with the size of its text @param {Size} stage @param {number} base @param {Size} picture @returns {View}
 */
export function form(part, stage, base, picture) {
  const margin = 16;
  const all = Math.min(stage.width / (part.width + 2 * margin), stage.height / (part.height + 2 * margin));
  const wide = stage.width / (part.width + 2 * margin);
  const least = readable / Math.max(part.font, 1);
  // Whole if that can be read; else its whole width; else what can be read of it.
  const k = Math.min(Math.max(all, Math.min(Math.max(wide, least), 1), least, base), 1.5, maxScale);
  const from = (/** @type {number} */ lo, /** @type {number} */ size, /** @type {number} */ seen) =>
    size + 2 * margin <= seen ? lo + size / 2 : lo - margin + seen / 2;
  return settle({
    zoom: k / base, cx: from(part.x, part.width, stage.width / k), cy: from(part.y, part.height, stage.height / k),
  }, stage, base, picture);
}
