// @ts-check
// The line to the door: opens it, keeps it, opens it again. It knows nothing of
// what is said over it.

/** @typedef {object} Ears
 * @property {() => void} open the door has let us in
 * @property {(message: any) => void} message
 * @property {(frame: ArrayBuffer) => void} frame
 * @property {(why: "lost" | "refused" | "waiting" | "expired" | "crowded", said: string) => void} gone
 * @property {(quiet: boolean) => void} [quiet] nothing has been heard for a moment, or something again */

const pauses = [200, 500, 1000, 2000, 4000];
/** How often we ask whether somebody is there: what is heard in between counts as well. */
const beatMs = 400;
/** A line on which nothing is heard for so long may be dead, and for so long is. */
const quietMs = 1000, deadMs = 3000;

export class Line {
  /** @param {string} path @param {Ears} ears @param {{bearer?: string}} [o] */
  constructor(path, ears, o = {}) {
    this.path = path;
    this.ears = ears;
    this.bearer = o.bearer;
    this.tries = 0;
    /** @type {WebSocket | null} */
    this.ws = null;
    this.timer = 0;
    this.pulse = 0;
    this.beats = 0;
    /** When each question was asked that has no answer yet. @type {Map<number, number>} */
    this.pinged = new Map();
    this.heardAt = 0;
    this.isQuiet = false;
    this.closed = false;
    this.rtt = 0;
    /** What the door's clock is ahead of ours by, in ms. @type {number | null} */
    this.skew = null;
  }

  get open() { return this.ws?.readyState === WebSocket.OPEN; }

  /** Opens the line now, whatever was under way. */
  connect() {
    this.drop();
    this.closed = false;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const ws = new WebSocket(`${scheme}//${location.host}${this.path}`);
    ws.binaryType = "arraybuffer";
    this.ws = ws;
    let heard = false;
    ws.onopen = () => {
      // Also with nothing to show: who is not known by a cookie is told so at once.
      if (this.bearer !== undefined) this.send({ t: "auth", bearer: this.bearer });
      this.watch();
    };
    ws.onmessage = (e) => {
      if (this.ws !== ws) return;
      this.heardAt = performance.now();
      if (!heard) {
        heard = true;
        this.tries = 0;
        this.ears.open();
      }
      if (e.data instanceof ArrayBuffer) return this.ears.frame(e.data);
      let message;
      try { message = JSON.parse(e.data); } catch { return; }
      if (message?.t !== "pong") return this.ears.message(message);
      const asked = this.pinged.get(message.n);
      if (asked === undefined) return;
      this.pinged.delete(message.n);
      this.rtt = performance.now() - asked;
      if (typeof message.now === "number") this.skew = message.now + this.rtt / 2 - Date.now();
    };
    ws.onclose = (e) => {
      if (this.ws !== ws) return;
      this.drop();
      if (this.closed) return;
      const why = /** @type {const} */ ({ 4401: "refused", 4409: "waiting", 4410: "expired", 4429: "crowded" });
      this.ears.gone(why[/** @type {4401} */ (e.code)] ?? "lost", e.reason);
    };
  }

  /** Opens the line again after a pause that grows, with chance in it so that many do not come at once. */
  again() {
    const pause = pauses[Math.min(this.tries++, pauses.length - 1)];
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.connect(), pause * (0.75 + Math.random() / 2));
  }

  /** Listens whether the line is alive, from now on. */
  watch() {
    window.clearInterval(this.pulse);
    this.heardAt = performance.now();
    this.hush(false);
    this.beat();
    let woke = 0;
    this.pulse = window.setInterval(() => {
      const now = performance.now();
      // Whoever slept has heard nothing either; that says nothing about the line.
      if (document.hidden || now - woke > 2000) this.heardAt = now;
      woke = now;
      const silence = now - this.heardAt;
      if (silence > deadMs) return this.giveUp();
      this.hush(silence > quietMs);
      this.beat();
    }, beatMs);
  }

  /** @param {boolean} quiet */
  hush(quiet) {
    if (this.isQuiet === quiet) return;
    this.isQuiet = quiet;
    this.ears.quiet?.(quiet);
  }

  /** Whatever the line says of itself, nobody is there. */
  giveUp() {
    this.drop();
    if (!this.closed) this.ears.gone("lost", "");
  }

  /** Asks whether somebody is there. */
  beat() {
    if (!this.open) return;
    this.pinged.set(++this.beats, performance.now());
    this.send({ t: "ping", n: this.beats });
  }

  /** Says something; false if there is nobody to hear it. Nothing waits for a later line. @param {object} message */
  send(message) {
    if (!this.open) return false;
    /** @type {WebSocket} */ (this.ws).send(JSON.stringify(message));
    return true;
  }

  /** Ends the line for good. */
  close() {
    this.closed = true;
    this.drop();
  }

  drop() {
    window.clearTimeout(this.timer);
    window.clearInterval(this.pulse);
    this.pinged.clear();
    this.isQuiet = false;
    const { ws } = this;
    this.ws = null;
    if (ws && ws.readyState < WebSocket.CLOSING) ws.close();
  }
}
