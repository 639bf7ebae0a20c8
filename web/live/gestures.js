// @ts-check
// Fingers and mice on the stage, turned into what the remote page is to feel.
// Two fingers are for the view; one is for the page. A page made for fingers
// gets the finger itself. A page made for a mouse gets a click for a tap, the
// wheel for a stroke, the right button for a long press, and a drag for a long
// press that moves. Its mouse comes to where a finger rests, before the click: what
// a page shows or fetches under a mouse is there when the finger lifts.

/** @typedef {import("./geometry.js").Point} Point */

/** @typedef {object} Touch one event of a finger or a mouse
 * @property {"down" | "move" | "up" | "cancel"} kind
 * @property {number} id
 * @property {boolean} mouse
 * @property {number} x of the stage
 * @property {number} y
 * @property {number} t ms
 * @property {number} [button] 0 left, 1 middle, 2 right
 * @property {number} [m] modifier keys */

/** @typedef {object} Target what the hands act on
 * @property {() => boolean} fingers whether the page takes fingers
 * @property {() => boolean} drives whether this person may act
 * @property {() => boolean} small whether the page is shown too small to read
 * @property {(at: Point, hold: boolean) => Point | null} page the page's point under the stage's; null outside of it, unless held
 * @property {(by: Point) => Point} pan moves the view; gives what is left over, in page px
 * @property {(from: [Point, Point], to: [Point, Point]) => void} pinch
 * @property {(at: Point) => void} zoom nearer, or back
 * @property {(message: object) => void} send
 * @property {(what: "held" | "refused") => void} feel a sign to the person */

/** @typedef {object} Clock
 * @property {(ms: number, then: () => void) => number} after
 * @property {(id: number) => void} stop
 * @property {(then: (now: number) => void) => number} frame
 * @property {(id: number) => void} unframe */

/** How far a finger may tremble and still be a tap, in px. */
const slop = 9;
/** A finger that has not moved by then does not mean to scroll, most often. */
const restMs = 60;
const holdMs = 450;
const twiceMs = 300;
const twicePx = 32;
/** How much of its speed a stroke keeps each ms after the finger has left. */
const glide = 0.9965;
const slowest = 0.03; // px a ms

const buttons = /** @type {const} */ (["left", "middle", "right"]);

export class Hands {
  /** @param {Target} target @param {Clock} clock */
  constructor(target, clock) {
    this.target = target;
    this.clock = clock;
    /** @type {Map<number, Point>} */
    this.down = new Map();
    /** @type {"idle" | "finger" | "pending" | "scroll" | "held" | "drag" | "pinch" | "still"} */
    this.mode = "idle";
    this.start = { x: 0, y: 0 };
    this.last = { x: 0, y: 0 };
    this.timer = 0;
    this.raf = 0;
    /** @type {(() => void) | null} what is told at the next frame */
    this.due = null;
    this.rolled = { x: 0, y: 0 };
    /** @type {Array<Point & {t: number}>} */
    this.trail = [];
    this.tapped = { x: 0, y: 0, t: -1e9 };
    this.pressed = { button: "", clicks: 0, x: 0, y: 0, t: -1e9 };
  }

  /** @param {Touch} e */
  handle(e) {
    if (e.mouse) return this.mouse(e);
    if (e.kind === "down") return this.touchDown(e);
    if (!this.down.has(e.id)) return;
    if (e.kind === "move") return this.touchMove(e);
    this.touchUp(e);
  }

  /** Lets go of everything: the picture is of something else now. */
  cancel() {
    this.rest();
    this.flush();
    if (this.mode === "finger") this.finger("cancel", this.last);
    if (this.mode === "drag") this.press("up", this.last, "left", 1, 0);
    if (this.pressed.button) this.press("up", this.pressed, this.pressed.button, 1, 0);
    this.pressed.button = "";
    this.mode = this.down.size ? "still" : "idle";
  }

  /** @param {Touch} e */
  touchDown(e) {
    const glides = this.raf && !this.due; // and is to be stopped, no more
    this.rest();
    const before = [...this.down.values()];
    this.down.set(e.id, { x: e.x, y: e.y });
    if (before.length === 1 && this.mode !== "drag") {
      this.flush();
      if (this.mode === "finger") this.finger("cancel", this.last);
      this.mode = "pinch";
      return;
    }
    if (before.length > 0) return;
    this.start = this.last = { x: e.x, y: e.y };
    this.trail = [{ x: e.x, y: e.y, t: e.t }];
    if (!this.target.drives() || !this.target.page(e, false)) {
      this.mode = "scroll"; // of the view alone
      return;
    }
    if (this.target.fingers()) {
      if (this.again(e)) { this.mode = "still"; return; }
      this.mode = "finger";
      this.finger("down", e);
      return;
    }
    this.mode = "pending";
    this.timer = this.clock.after(restMs, () => {
      if (!glides) this.press("move", this.start, "", 0, 0);
      this.timer = this.clock.after(holdMs - restMs, () => {
        this.mode = "held";
        this.target.feel("held");
      });
    });
  }

  /** @param {Touch} e */
  touchMove(e) {
    const was = this.down.get(e.id) ?? this.last;
    const at = { x: e.x, y: e.y };
    if (this.mode === "pinch") {
      const ids = [...this.down.keys()].slice(0, 2);
      const from = ids.map((id) => /** @type {Point} */ (this.down.get(id)));
      this.down.set(e.id, at);
      const to = ids.map((id) => /** @type {Point} */ (this.down.get(id)));
      if (ids.length === 2) this.target.pinch(/** @type {[Point, Point]} */ (from), /** @type {[Point, Point]} */ (to));
      return;
    }
    this.down.set(e.id, at);
    this.last = at;
    const far = Math.hypot(at.x - this.start.x, at.y - this.start.y) > slop;
    switch (this.mode) {
      case "finger":
        this.soon(() => this.finger("move", this.last));
        break;
      case "pending":
        if (!far) break;
        this.clock.stop(this.timer);
        this.mode = "scroll";
        this.scroll({ x: at.x - this.start.x, y: at.y - this.start.y });
        this.note(e);
        break;
      case "scroll":
        this.scroll({ x: at.x - was.x, y: at.y - was.y });
        this.note(e);
        break;
      case "held":
        if (!far) break;
        this.mode = "drag";
        this.press("move", this.start, "", 0, 0);
        this.press("down", this.start, "left", 1, 0);
        this.soon(() => this.press("move", this.last, "left", 0, 0));
        break;
      case "drag":
        this.soon(() => this.press("move", this.last, "left", 0, 0));
        break;
    }
  }

  /** @param {Touch} e */
  touchUp(e) {
    this.down.delete(e.id);
    this.clock.stop(this.timer);
    if (this.mode === "pinch") this.mode = "still";
    if (this.down.size > 0) return;
    const { mode } = this;
    this.mode = "idle";
    this.flush();
    const at = { x: e.x, y: e.y };
    if (e.kind === "cancel") {
      if (mode === "finger") this.finger("cancel", this.last);
      if (mode === "drag") this.press("up", this.last, "left", 1, 0);
      return;
    }
    switch (mode) {
      case "finger":
        this.finger("up", at);
        this.tapped = this.strayed(at) ? { ...at, t: -1e9 } : { ...at, t: e.t };
        break;
      case "pending":
        if (this.again(e)) break;
        this.tapped = { ...at, t: e.t };
        this.press("tap", this.start, "left", 1, 0);
        break;
      case "held":
        this.press("tap", this.start, "right", 1, 0);
        break;
      case "drag":
        this.press("move", at, "left", 0, 0);
        this.press("up", at, "left", 1, 0);
        break;
      case "scroll":
        this.note(e);
        if (!this.strayed(at) && !this.target.drives()) {
          if (!this.again(e)) this.target.feel("refused");
          this.tapped = { ...at, t: e.t };
        } else this.fling();
        break;
    }
  }

  /** @param {Touch} e */
  mouse(e) {
    this.rest();
    if (!this.target.drives()) {
      if (e.kind === "down") this.target.feel("refused");
      return;
    }
    const at = { x: e.x, y: e.y };
    const m = e.m ?? 0;
    if (e.kind === "down") {
      if (!this.target.page(at, false)) return;
      const button = buttons[e.button ?? 0] ?? "left";
      const p = this.pressed;
      const same = e.t - p.t < 500 && Math.hypot(at.x - p.x, at.y - p.y) < 5;
      this.flush();
      this.pressed = { button, clicks: same ? (p.clicks % 3) + 1 : 1, ...at, t: e.t };
      this.press("down", at, button, this.pressed.clicks, m);
      return;
    }
    if (e.kind === "move") {
      this.soon(() => this.press("move", at, this.pressed.button, 0, m));
      return;
    }
    if (!this.pressed.button) return;
    this.flush();
    this.press("up", at, this.pressed.button, this.pressed.clicks, m);
    this.pressed.button = "";
  }

  /** Whether this tap is the second of two, and meant to come nearer. @param {Touch} e */
  again(e) {
    const twice = this.target.small() && e.t - this.tapped.t < twiceMs &&
      Math.hypot(e.x - this.tapped.x, e.y - this.tapped.y) < twicePx;
    if (twice) {
      this.tapped.t = -1e9;
      this.target.zoom(e);
    }
    return twice;
  }

  /** @param {Point} at */
  strayed(at) { return Math.hypot(at.x - this.start.x, at.y - this.start.y) > slop; }

  /** @param {"down" | "move" | "up" | "cancel"} k @param {Point} at */
  finger(k, at) {
    const p = this.target.page(at, true);
    if (!p) return;
    const gone = k === "up" || k === "cancel";
    this.target.send({ t: "ptr", k, x: p.x, y: p.y, f: 0, m: 0, fingers: gone ? [] : [{ f: 0, x: p.x, y: p.y }] });
  }

  /** @param {"down" | "move" | "up" | "tap"} k a tap is all of a click, so that nothing comes between @param {Point} at @param {string} b @param {number} c @param {number} m */
  press(k, at, b, c, m) {
    const p = this.target.page(at, b !== "");
    if (p) this.target.send({ t: "ptr", k, x: p.x, y: p.y, f: -1, b, c, m });
  }

  /** @param {Point} by of the finger, in stage px */
  scroll(by) {
    const left = this.target.pan(by);
    if (!this.target.drives()) return;
    this.rolled.x -= left.x;
    this.rolled.y -= left.y;
    this.soon(() => this.roll());
  }

  roll() {
    const p = this.target.page(this.start, false);
    const { x, y } = this.rolled;
    this.rolled = { x: 0, y: 0 };
    if (p && (x || y)) this.target.send({ t: "wheel", x: p.x, y: p.y, dx: x, dy: y, m: 0 });
  }

  /** Remembers how fast the finger went lately. @param {Touch} e */
  note(e) {
    this.trail.push({ x: e.x, y: e.y, t: e.t });
    while (this.trail.length > 2 && e.t - this.trail[0].t > 100) this.trail.shift();
  }

  /** Goes on by itself after a stroke, slower and slower. */
  fling() {
    const a = this.trail[0], b = this.trail[this.trail.length - 1];
    const took = b.t - a.t;
    if (this.trail.length < 3 || took <= 0) return;
    let v = { x: (b.x - a.x) / took, y: (b.y - a.y) / took };
    let at = 0;
    const step = (/** @type {number} */ now) => {
      const ms = at ? Math.min(now - at, 50) : 16;
      at = now;
      v = { x: v.x * glide ** ms, y: v.y * glide ** ms };
      if (Math.hypot(v.x, v.y) < slowest) { this.raf = 0; return; }
      const left = this.target.pan({ x: v.x * ms, y: v.y * ms });
      this.rolled = { x: -left.x, y: -left.y };
      if (this.target.drives()) this.roll();
      this.raf = this.clock.frame(step);
    };
    if (Math.hypot(v.x, v.y) > 0.25) this.raf = this.clock.frame(step);
  }

  /** Tells at the next frame: only the newest of many moves matters. @param {() => void} tell */
  soon(tell) {
    this.due = tell;
    if (!this.raf) this.raf = this.clock.frame(() => { this.raf = 0; this.flush(); });
  }

  /** Tells now what was to be told at the next frame. */
  flush() {
    const tell = this.due;
    this.due = null;
    if (tell) {
      this.clock.unframe(this.raf);
      this.raf = 0;
      tell();
    }
  }

  /** Ends what goes on by itself. */
  rest() {
    this.clock.stop(this.timer);
    if (this.raf && !this.due) {
      this.clock.unframe(this.raf);
      this.raf = 0;
    }
  }
}
