// @ts-check
// The line to the door: opens it, keeps it, opens it again. It knows nothing of
// what is said over it.

/** @typedef {object} Ears
 * @property {() => void} open the door has let us in
 * @property {(message: any) => void} message
 * @property {(frame: ArrayBuffer) => void} frame
 * @property {(why: "lost" | "refused" | "waiting" | "expired" | "crowded", said: string) => void} gone
 * @property {(rtt: number) => void} [rtt] */

const pauses = [200, 500, 1000, 2000, 4000];
const pingMs = 20_000;
/** A line on which nothing answers for this long is dead, whatever it says itself. */
const deadMs = 10_000;

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
    this.ping = 0;
    this.beats = 0;
    this.pinged = 0;
    this.closed = false;
    this.rtt = 0;
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
      this.ping = window.setInterval(() => this.beat(), pingMs);
    };
    ws.onmessage = (e) => {
      if (this.ws !== ws) return;
      if (!heard) {
        heard = true;
        this.tries = 0;
        this.ears.open();
      }
      if (e.data instanceof ArrayBuffer) return this.ears.frame(e.data);
      let message;
      try { message = JSON.parse(e.data); } catch { return; }
      if (message?.t !== "pong") return this.ears.message(message);
      if (message.n !== this.beats) return;
      this.rtt = performance.now() - this.pinged;
      window.clearTimeout(this.timer);
      this.ears.rtt?.(this.rtt);
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

  /** Asks whether somebody is there. */
  beat() {
    if (!this.open) return;
    this.pinged = performance.now();
    this.send({ t: "ping", n: ++this.beats });
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.ws?.close(), deadMs);
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
    window.clearInterval(this.ping);
    const { ws } = this;
    this.ws = null;
    if (ws && ws.readyState < WebSocket.CLOSING) ws.close();
  }
}
