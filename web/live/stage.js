// @ts-check
// The stage: where the picture lies on the glass, and what hands do there. It
// holds the view and puts it on screen in one transform.

import { baseScale, legible, nearest, opening, pan, pinch, placeOf, reveal, settle, toPage, toPicture, within, zoomAbout } from "./geometry.js";
import { Hands } from "./gestures.js";
import { held } from "./keyboard.js";

/** @typedef {import("./geometry.js").Point} Point */
/** @typedef {import("./geometry.js").Rect} Rect */
/** @typedef {import("./geometry.js").Shot} Shot */
/** @typedef {import("./geometry.js").Size} Size */

/** @typedef {object} Ears
 * @property {(message: object) => boolean} send
 * @property {() => boolean} drives
 * @property {() => boolean} fingers
 * @property {() => void} refused
 * @property {(target: EventTarget | null) => boolean} owned whether a control has the event for itself
 * @property {(mouse: boolean) => void} touched
 * @property {() => void} moved the view is another */

export class Stage {
  /** @param {HTMLElement} box @param {HTMLElement} plane what is moved @param {Ears} ears */
  constructor(box, plane, ears) {
    this.box = box;
    this.plane = plane;
    this.ears = ears;
    /** @type {Size} */
    this.size = { width: 0, height: 0 };
    /** @type {Size} the stage while no keyboard covers it */
    this.rest = { width: 0, height: 0 };
    /** @type {Shot | null} */
    this.shot = null;
    this.view = { zoom: 1, cx: 0, cy: 0 };
    /** @type {import("./geometry.js").View | null} where it was before a field was shown */
    this.before = null;
    /** Whether the view is as it opened, so that it may still be put where the fields are. */
    this.fresh = true;
    this.hands = new Hands(this.target(), {
      after: (ms, then) => window.setTimeout(then, ms), stop: (id) => window.clearTimeout(id),
      frame: (then) => window.requestAnimationFrame(then), unframe: (id) => window.cancelAnimationFrame(id),
    });
    this.listen();
  }

  get base() { return this.shot ? baseScale(this.rest, this.shot) : 1; }
  /** Whether the page is wider than can be read here at once. */
  get shrinks() { return this.base < legible; }
  get place() { return placeOf(this.view, this.size, this.base); }

  /** The stage has another size. @param {boolean} covered whether by a keyboard */
  resize(covered) {
    const { clientWidth: width, clientHeight: height } = this.box;
    this.size = { width, height };
    if (!covered || width !== this.rest.width) this.rest = { width, height };
    this.put(this.view);
  }

  /** Another frame is drawn; only its geometry matters here. @param {Shot} shot @param {boolean} first of a tab */
  show(shot, first) {
    const old = this.shot;
    const same = old && old.width === shot.width && old.height === shot.height && old.scale === shot.scale && old.top === shot.top;
    this.shot = { width: shot.width, height: shot.height, scale: shot.scale, top: shot.top };
    if (same && !first) return false;
    if (!old || old.width !== shot.width || old.height !== shot.height || first) {
      // Laid out anew it is another sight of the page: where one was in the old says nothing.
      const anew = !old || first || old.width !== shot.width;
      if (old && anew) this.hands.cancel();
      if (anew) {
        this.fresh = true;
        this.before = null;
      }
      this.view = old && !anew ? { ...this.view, cy: (this.view.cy / old.height) * shot.height } : opening(this.size, this.base, shot);
    }
    this.plane.style.width = `${shot.width}px`;
    this.plane.style.height = `${shot.height}px`;
    this.put(this.view);
    return true;
  }

  /** Shows a part of the picture so that it can be read. @param {Rect & {font: number}} rect */
  reveal(rect) {
    if (!this.shot) return;
    this.before ??= this.view;
    this.fresh = false;
    this.put(reveal(this.view, rect, 15 / Math.max(rect.font, 1), this.size, this.base, this.shot), true);
  }

  /** Goes back to where it was before a field was shown. */
  unreveal() {
    if (this.before) this.put(this.before, true);
    this.before = null;
  }

  /** @param {number} factor */
  zoomBy(factor) {
    const mid = { x: this.size.width / 2, y: this.size.height / 2 };
    if (this.shot) this.put(zoomAbout(this.view, factor, mid, mid, this.size, this.base, this.shot), true);
  }

  /** @param {import("./geometry.js").View} view @param {boolean} [softly] */
  put(view, softly = false) {
    if (!this.shot || !this.size.width) return;
    this.view = settle(view, this.size, this.base, this.shot);
    const { k, x, y } = this.place;
    this.plane.classList.toggle("soft", softly);
    this.plane.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    this.ears.moved();
  }

  /** @returns {import("./gestures.js").Target} */
  target() {
    return {
      fingers: this.ears.fingers,
      drives: this.ears.drives,
      small: () => this.base < legible,
      send: this.ears.send,
      feel: (what) => what === "held" ? navigator.vibrate?.(12) : this.ears.refused(),
      page: (at, hold) => {
        if (!this.shot) return null;
        const p = toPicture(at, this.place);
        if (!hold && !within(p, this.shot)) return null;
        return toPage(hold ? nearest(p, this.shot) : p, this.shot);
      },
      pan: (by) => {
        if (!this.shot) return { x: 0, y: 0 };
        const { view, left } = pan(this.view, by, this.size, this.base, this.shot);
        this.before = null;
        this.fresh = false;
        this.put(view);
        const k = this.place.k * this.shot.scale;
        return { x: left.x / k, y: left.y / k };
      },
      pinch: (from, to) => {
        this.before = null;
        this.fresh = false;
        if (this.shot) this.put(pinch(this.view, from, to, this.size, this.base, this.shot));
      },
      zoom: (at) => {
        if (!this.shot) return;
        this.before = null;
        const near = Math.max(1 / this.base, 2);
        this.put(zoomAbout(this.view, this.view.zoom > 1.05 ? 1 / this.view.zoom : near, at, at, this.size, this.base, this.shot), true);
      },
    };
  }

  listen() {
    const { box } = this;
    const at = (/** @type {MouseEvent} */ e) => {
      const r = box.getBoundingClientRect();
      return { x: e.clientX - r.left, y: e.clientY - r.top };
    };
    const pass = (/** @type {"down" | "move" | "up" | "cancel"} */ kind) => (/** @type {PointerEvent} */ e) => {
      const mouse = e.pointerType === "mouse";
      if (kind === "down") {
        this.ears.touched(mouse);
        if (this.ears.owned(e.target)) return;
        if (mouse || !(e.target instanceof HTMLElement && e.target.dataset.kind)) box.setPointerCapture(e.pointerId);
      }
      this.hands.handle({ kind, id: e.pointerId, mouse, ...at(e), t: e.timeStamp, button: e.button, m: held(e) });
    };
    box.addEventListener("pointerdown", pass("down"));
    box.addEventListener("pointermove", pass("move"));
    box.addEventListener("pointerup", pass("up"));
    box.addEventListener("pointercancel", pass("cancel"));
    box.addEventListener("contextmenu", (e) => e.preventDefault());
    // A click takes the focus from nothing: the keys keep it.
    box.addEventListener("mousedown", (e) => { if (!this.ears.owned(e.target) && !(e.target instanceof HTMLElement && e.target.dataset.kind)) e.preventDefault(); });
    // A browser scrolls to what gets the focus; here only the view moves.
    box.addEventListener("scroll", () => box.scrollTo(0, 0));
    box.addEventListener("wheel", (e) => {
      e.preventDefault();
      const p = at(e);
      const unit = e.deltaMode === 1 ? 32 : e.deltaMode === 2 ? this.size.height : 1;
      if (e.ctrlKey) {
        if (this.shot) this.put(zoomAbout(this.view, Math.exp(-e.deltaY * unit / 200), p, p, this.size, this.base, this.shot));
        return;
      }
      const to = this.target().page(p, false);
      if (!to) return;
      if (!this.ears.drives()) return void this.target().pan({ x: -e.deltaX * unit, y: -e.deltaY * unit });
      this.ears.send({ t: "wheel", x: to.x, y: to.y, dx: e.deltaX * unit, dy: e.deltaY * unit, m: held(e) });
    }, { passive: false });
  }
}
