// @ts-check
// Draws frames: one at a time, always the newest, and says when one is drawn.

import { readFrame } from "./frame.js";

/** @typedef {import("./frame.js").Frame} Frame */

export class Picture {
  /** @param {HTMLCanvasElement} canvas @param {{drawn: (frame: Frame) => void}} ears */
  constructor(canvas, ears) {
    this.canvas = canvas;
    this.ears = ears;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false, desynchronized: !lowLatencyBreaks() }));
    /** @type {Frame | null} what is on the glass */
    this.shown = null;
    /** @type {Frame | null} what comes next; a newer one takes its place */
    this.next = null;
    this.busy = false;
  }

  /** @param {ArrayBuffer} data */
  take(data) {
    const frame = readFrame(data);
    if (!frame) return;
    this.next = frame;
    if (!this.busy) void this.work();
  }

  async work() {
    this.busy = true;
    while (this.next) {
      const frame = this.next;
      this.next = null;
      try {
        const bitmap = await createImageBitmap(frame.jpeg);
        // A still that decoded slowly must not cover what moved meanwhile.
        if (!(frame.sharp && this.next)) this.draw(frame, bitmap);
        bitmap.close();
      } catch {
        // A torn picture: the next one will do.
      }
    }
    this.busy = false;
  }

  /** @param {Frame} frame @param {ImageBitmap} bitmap */
  draw(frame, bitmap) {
    const { canvas } = this;
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
      canvas.width = bitmap.width;
      canvas.height = bitmap.height;
    }
    this.pen.drawImage(bitmap, 0, 0);
    this.shown = frame;
    this.ears.drawn(frame);
  }
}

/** Android's Chromium tears transformed canvases that are out of step with the page. */
const lowLatencyBreaks = () => /Android/.test(navigator.userAgent);
