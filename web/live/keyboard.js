// @ts-check
// Keys that are for the page and for no field that we know: the phone's keyboard
// called up by its button, and the keyboard of a laptop. One unseen input has the
// focus for both, because a phone keeps its keyboard open only for an input.

import { change, strokes, unfinished } from "./edit.js";

/** @typedef {object} Ears
 * @property {(message: object) => boolean} send
 * @property {() => boolean} drives
 * @property {(up: boolean) => void} changed whether the keyboard stands open by its button */

/** Something to erase: a phone says nothing of Backspace in an empty input. */
const pad = "\u00b7".repeat(16);
/** How long the keyboard is kept for a field that may still come. */
const keepMs = 1500;
/** A key that only helps others, or belongs to the device. */
const silent = new Set(["Unidentified", "Process", "Dead", "CapsLock", "NumLock", "Fn", "FnLock", "AudioVolumeUp", "AudioVolumeDown", "AudioVolumeMute", "Power"]);

/** @param {KeyboardEvent | MouseEvent} e */
export const held = (e) => (e.altKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.metaKey ? 4 : 0) | (e.shiftKey ? 8 : 0);

export class Keyboard {
  /** @param {HTMLInputElement} input @param {Ears} ears */
  constructor(input, ears) {
    this.input = input;
    this.ears = ears;
    this.base = pad;
    this.composing = false;
    this.soft = false;
    this.timer = 0;
    input.value = pad;
    input.addEventListener("compositionstart", () => { this.composing = true; });
    input.addEventListener("compositionend", () => { this.composing = false; this.typed(); });
    input.addEventListener("input", (e) => {
      const wait = this.composing && unfinished(/** @type {InputEvent} */ (e).data ?? "", navigator.languages);
      if (!wait) this.typed();
    });
    input.addEventListener("blur", () => this.closed());
    input.addEventListener("keydown", (e) => this.key(e, "down"));
    input.addEventListener("keyup", (e) => this.key(e, "up"));
    input.addEventListener("paste", (e) => {
      e.preventDefault();
      const s = e.clipboardData?.getData("text/plain");
      if (s && ears.drives()) ears.send({ t: "paste", s });
    });
    input.addEventListener("copy", (e) => { e.preventDefault(); ears.send({ t: "copy" }); });
    input.addEventListener("cut", (e) => {
      e.preventDefault();
      ears.send({ t: "copy" });
      this.strike("Delete", "Delete", 0);
    });
  }

  /** Opens or closes the phone's keyboard: the button. */
  toggle() {
    if (this.soft) return this.input.blur();
    this.soft = true;
    this.take();
    this.ears.changed(true);
  }

  /** Takes the focus, so that a laptop's keys come here. */
  take() {
    this.input.focus({ preventScroll: true });
    this.reset();
  }

  /** Keeps the phone's keyboard open while the remote focus moves on; closes it if it goes nowhere. */
  keep() {
    this.soft = true;
    this.take();
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.input.blur(), keepMs);
  }

  closed() {
    window.clearTimeout(this.timer);
    this.composing = false;
    this.reset();
    if (!this.soft) return;
    this.soft = false;
    this.ears.changed(false);
  }

  reset() {
    if (this.composing) return;
    this.input.value = this.base = pad;
    this.input.setSelectionRange(pad.length, pad.length);
  }

  /** Tells what the input holds more or less than before, at the end of what was typed. */
  typed() {
    const { value } = this.input;
    const c = change(this.base, value);
    // Everything behind the change is typed anew: the caret of the page is at its end.
    const gone = this.base.slice(c.at), come = value.slice(c.at);
    for (let n = strokes(gone); n > 0; n--) this.strike("Backspace", "Backspace", 0);
    if (come) this.ears.send({ t: "text", s: come });
    this.base = value;
    if (!this.composing && (value.length < 8 || value.length > 400)) this.reset();
    if (this.timer) {
      window.clearTimeout(this.timer);
      this.timer = 0;
    }
  }

  /** @param {string} key @param {string} code @param {number} m */
  strike(key, code, m) {
    if (!this.ears.drives()) return;
    this.ears.send({ t: "key", k: "down", key, code, m, r: false });
    this.ears.send({ t: "key", k: "up", key, code, m, r: false });
  }

  /** @param {KeyboardEvent} e @param {"down" | "up"} k */
  key(e, k) {
    if (e.isComposing || this.composing || silent.has(e.key) || !this.ears.drives()) return;
    const m = held(e);
    const command = e.ctrlKey || e.metaKey;
    // Copy and paste come as events of their own, with the clipboard in hand.
    if (command && !e.altKey && /^[cvx]$/i.test(e.key)) return;
    // AltGr types; so does Option on a Mac.
    const types = e.key.length === 1 && !command || e.getModifierState("AltGraph") && e.key.length === 1;
    // A phone's keyboard tells of letters by the input alone; its keys carry no code.
    if (types && !e.code) return;
    e.preventDefault();
    this.ears.send({ t: "key", k, key: e.key, code: e.code, m: types && e.getModifierState("AltGraph") ? m & ~3 : m, r: e.repeat });
  }
}
