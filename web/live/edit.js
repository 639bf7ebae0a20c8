// @ts-check
// What was typed into a control of this phone, told so that the remote field
// ends up the same; and what the remote field made of it. Pure.

/** @typedef {{at: number, removed: number, inserted: string}} Change */

/**
 * The least change from one text to another. Never splits a surrogate pair, and
 * of several equal places takes the one that ends at the caret: "aa" + "a" typed
 * at the front is not the same for a site as at the end.
 * @param {string} base @param {string} value @param {number} [caret] after the change
 * @returns {Change}
 */
export function change(base, value, caret = value.length) {
  const grown = value.length - base.length;
  // What follows the caret was there before; that bounds the common end.
  let tail = 0;
  const mostTail = Math.min(base.length, value.length, Math.max(0, value.length - caret));
  while (tail < mostTail && base[base.length - 1 - tail] === value[value.length - 1 - tail]) tail++;
  let head = 0;
  const mostHead = Math.min(base.length, value.length) - tail;
  while (head < mostHead && base[head] === value[head]) head++;
  // A change that the caret does not explain: take all of the common end.
  const most = Math.min(base.length, value.length) - head;
  while (tail < most && base[base.length - 1 - tail] === value[value.length - 1 - tail]) tail++;
  if (head > 0 && high(value.charCodeAt(head - 1))) head--;
  if (tail > 0 && low(value.charCodeAt(value.length - tail))) tail--;
  return { at: head, removed: base.length - head - tail, inserted: value.slice(head, base.length + grown - tail) };
}

/** @param {number} c */
const high = (c) => c >= 0xd800 && c <= 0xdbff;
/** @param {number} c */
const low = (c) => c >= 0xdc00 && c <= 0xdfff;

/** @param {string} base @param {Change} c */
export const apply = (base, c) => base.slice(0, c.at) + c.inserted + base.slice(c.at + c.removed);

/** How many times Backspace has to be struck for a text to be gone. @param {string} text */
export const strokes = (text) => Array.from(text).length;

/**
 * Whether a text that an input method has not finished should wait until it has.
 * Latin keyboards of phones compose every word, and what they show is what they
 * mean; what stands for a word of Chinese, Japanese or Korean is not.
 * @param {string} text @param {readonly string[]} languages
 */
export function unfinished(text, languages) {
  return /[\u1100-\u11ff\u3040-\u30ff\u3105-\u312f\u3130-\u318f\u3400-\u9fff\uac00-\ud7af]/.test(text) ||
    languages.some((l) => /^(zh|ja|ko)\b/i.test(l));
}

/** @typedef {{id: string, value: string, selection: [number, number], base: string | null, seq: number}} Edit */

/**
 * What this phone and the remote field know of each other. Of a masked field the
 * phone knows only what it typed itself; what stood there before has no base, and
 * the first edit replaces it. A box holds one character of a code: what is typed
 * beyond that is for the next one, and takes nothing away from this.
 */
export class Ledger {
  /** @param {string} id @param {string | undefined} value @param {number} [length] of what is not told @param {boolean} [box] */
  constructor(id, value, length = 0, box = false) {
    this.id = id;
    this.box = box;
    /** @type {string | null} */
    this.base = value ?? (length > 0 ? null : "");
    this.sent = 0;
    this.taken = 0;
    this.read = -1;
    this.place = "";
  }

  /** Whether an edit is on its way, so that what the remote side says is old. */
  get pending() { return this.taken < this.sent; }

  /**
   * The edit that tells of a value, or null if there is nothing to tell.
   * @param {string} value @param {[number, number]} selection @param {() => number} nextSeq
   * @returns {Edit | null}
   */
  tell(value, selection, nextSeq) {
    const place = selection.join();
    if (value === (this.base ?? "") && (this.base === null || place === this.place)) return null;
    const edit = { id: this.id, value, selection, base: this.base, seq: nextSeq() };
    this.base = value;
    this.place = place;
    this.sent = edit.seq;
    return edit;
  }

  /**
   * The edit that tells all of a value again, because nobody can say which of
   * those before it were heard: it replaces whatever the remote field holds.
   * @param {string} value @param {[number, number]} selection @param {() => number} nextSeq
   * @returns {Edit}
   */
  retell(value, selection, nextSeq) {
    const edit = { id: this.id, value, selection, base: null, seq: nextSeq() };
    this.base = value;
    this.place = selection.join();
    this.sent = edit.seq;
    return edit;
  }

  /** Gives up what was told and never answered. */
  renounce() {
    this.taken = this.sent;
    this.base = null;
  }

  /**
   * Takes in what the remote field holds now. Gives the value that the control
   * should show, or null if it should be left as it is.
   * @param {string | undefined} value @param {number | undefined} length where the value is not told
   * @param {number} read counts the readings of the remote field: a report may come behind an answer that is younger
   * @param {number} [seq] the last edit that it has taken in; without it, a report of no edit
   * @returns {string | null}
   */
  hear(value, length, read, seq) {
    if (seq !== undefined) {
      this.taken = Math.max(this.taken, seq);
      this.read = Math.max(this.read, read);
    } else if (read <= this.read) return null;
    if (this.pending) return null;
    if (value === undefined) {
      if (this.box && length === 1 && this.base !== null) {
        const kept = this.base.slice(0, 1);
        if (kept === this.base) return null;
        this.place = "";
        return this.base = kept;
      }
      if (length === undefined || length === this.base?.length || length > 0 && this.base === null) return null;
      return this.forget(length);
    }
    if (value === this.base) return null;
    this.base = value;
    this.place = "";
    return value;
  }

  /** A person has come to it, to put something else there if it is full. @param {number} length */
  visit(length) {
    if (this.box && this.base === "" && length > 0) this.forget(length);
  }

  /** Knows no longer what stands there, only how long it is. @param {number} length */
  forget(length) {
    this.base = length > 0 ? null : "";
    this.place = "";
    return "";
  }
}
