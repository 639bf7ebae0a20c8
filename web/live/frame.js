// @ts-check
// One frame as it comes off the wire: 40 bytes that say what it is, then a JPEG.

/** @typedef {object} Frame
 * @property {boolean} sharp a still of a page at rest
 * @property {boolean} first the first of a tab
 * @property {number} tab
 * @property {number} number
 * @property {number} width of what is shown, in CSS px
 * @property {number} height
 * @property {number} scale of the page in the picture
 * @property {number} top where the page begins in the picture
 * @property {number} scrollX
 * @property {number} scrollY
 * @property {number} age ms, of the picture when it was sent
 * @property {number} sent when, by the door's clock, in ms; only the last 32 bits of that
 * @property {boolean} more whether parts of it follow
 * @property {Blob} jpeg */

export const headerBytes = 40;

/**
 * Reads a frame; null for what is none.
 * @param {ArrayBuffer} data @returns {Frame | null}
 */
export function readFrame(data) {
  if (data.byteLength <= headerBytes) return null;
  const v = new DataView(data);
  const frame = {
    sharp: (v.getUint8(1) & 1) !== 0,
    first: (v.getUint8(1) & 2) !== 0,
    tab: v.getUint16(2),
    number: v.getUint32(4),
    width: v.getFloat32(8),
    height: v.getFloat32(12),
    scale: v.getFloat32(16),
    top: v.getFloat32(20),
    scrollX: v.getFloat32(24),
    scrollY: v.getFloat32(28),
    age: v.getUint32(32),
    sent: v.getUint32(36),
    more: (v.getUint8(1) & 4) !== 0,
    jpeg: new Blob([new Uint8Array(data, headerBytes)], { type: "image/jpeg" }),
  };
  const sane = v.getUint8(0) === 1 && frame.width > 0 && frame.height > 0 && frame.scale > 0 &&
    Number.isFinite(frame.width + frame.height + frame.scale + frame.top);
  return sane ? frame : null;
}

/** How long a frame has been on its way, in ms. @param {Frame} frame @param {number} now by the door's clock */
export const onItsWay = (frame, now) => (Math.floor(now) - frame.sent) | 0;

/** Puts frames together that a narrow line gets in parts, with other things in between. */
export class Joiner {
  constructor() {
    /** @type {Frame | null} */
    this.begun = null;
    /** @type {BlobPart[]} */
    this.parts = [];
  }

  /** A frame that is whole, or null while one is not. @param {ArrayBuffer} data @returns {Frame | null} */
  take(data) {
    const v = new Uint8Array(data);
    if (v[0] !== 2) {
      const frame = readFrame(data);
      if (!frame?.more) return frame;
      this.begun = frame;
      this.parts = [frame.jpeg];
      return null;
    }
    this.parts.push(v.subarray(2));
    return v[1] && this.begun ? { ...this.begun, jpeg: new Blob(this.parts, { type: "image/jpeg" }) } : null;
  }
}
