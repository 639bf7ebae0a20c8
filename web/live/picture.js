// @ts-check
// Draws frames: one at a time, always the newest, and says when one is drawn.

import { Joiner, onItsWay } from "./frame.js";

/** @typedef {import("./frame.js").Frame} Frame */

/** A picture that has been on its way for so long is not shown after a silence, in ms. */
const tooOld = 1000;

export class Picture {
  /** @param {HTMLCanvasElement} canvas @param {{drawn: (frame: Frame) => void, skipped: (frame: Frame) => void}} ears */
  constructor(canvas, ears) {
    this.canvas = canvas;
    this.ears = ears;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false, desynchronized: !lowLatencyBreaks() }));
    /** @type {Frame | null} what is on the glass */
    this.shown = null;
    /** @type {Frame | null} what comes next; a newer one takes its place */
    this.next = null;
    this.busy = false;
    this.joiner = new Joiner();
    /** Whether what comes may be older than what a person takes it for. */
    this.stale = false;
  }

  /** The line is another, or was silent: what set off before is not shown any more. @param {boolean} whole whether it is another line */
  doubt(whole) {
    this.stale = true;
    if (whole) this.joiner = new Joiner();
  }

  /** @param {ArrayBuffer} data @param {number | null} now by the door's clock, if that is known */
  take(data, now) {
    const frame = this.joiner.take(data);
    if (!frame) return;
    if (this.stale && now !== null && onItsWay(frame, now) > tooOld) return this.ears.skipped(frame);
    this.stale = false;
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
