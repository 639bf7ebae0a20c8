// @ts-check
// Plays the protocol with canned states to the built pages, and keeps what it is
// sent. For tests and screenshots only; it checks nothing.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { figures, noFigures } from "./figures.js";
import { consoleState, emptyConsole, scenarios } from "./scenarios.js";

/** The door's own policy, and stricter in one thing: no text becomes markup. */
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
const here = dirname(fileURLToPath(import.meta.url));

/** @typedef {{jpegs: Buffer[], width: number, height: number, fields: any[]}} Shown a page as it is shown */
/** @typedef {{m: any[], ws: import("ws").WebSocket | null, claims: any[], frames: number, uploads: number, refused: number}} Heard what one link was sent */

/** Builds the pages and serves them. @param {{[name: string]: Shown}} pictures */
export async function serve(pictures) {
  const out = mkdtempSync(join(tmpdir(), "tapin-web-"));
  execFileSync("go", ["run", "./web/dev", "pages", out], { cwd: join(here, "../.."), stdio: ["ignore", "ignore", "inherit"] });
  // As the door names assets: one folder, whose name changes with them.
  const shell = (/** @type {string} */ name) => readFileSync(join(out, name, "index.html"), "utf8").replace(/\b(src|href)="([^"#:]+)"/g, (_, what, to) => `${what}="${new URL(to, `http://x/assets/1a2b/${name}/`).pathname}"`);
  /** @type {Map<string, Heard>} */
  const records = new Map();
  const record = (/** @type {string} */ id) => {
    if (!records.has(id)) records.set(id, { m: [], ws: null, claims: [], frames: 0, uploads: 0, refused: 0 });
    return /** @type {Heard} */ (records.get(id));
  };
  /** How the console stands: as it is, empty, refused, or cut off. */
  const scene = { console: /** @type {"full" | "empty" | "refused" | "lost"} */ ("full") };
  const server = createServer((req, res) => {
    const path = new URL(req.url ?? "/", "http://x").pathname;
    const [, kind, id = "", verb] = path.split("/");
    const name = id.split("~")[0];
    const send = (/** @type {number} */ status, /** @type {string} */ type, /** @type {string | Buffer} */ body) => {
      res.writeHead(status, { "Content-Type": type, "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store" });
      res.end(body);
    };
    if (req.method === "POST") {
      /** @type {Buffer[]} */
      const body = [];
      req.on("data", (c) => body.push(c));
      req.on("end", () => {
        const text = Buffer.concat(body).toString();
        if (verb === "upload") {
          record(id).uploads += Buffer.concat(body).length;
          return send(200, "application/json", '{"ok":true}');
        }
        const s = scenarios[name];
        record(kind === "console" ? "console" : id).claims.push(JSON.parse(text || "{}"));
        const status = kind === "console" ? (name !== "claim" ? 404 : scene.console === "refused" ? 401 : 200) : s?.claim ?? (s ? 200 : 410);
        send(status, "application/json", JSON.stringify({ ok: status === 200, mode: "drive", number: s?.number }));
      });
      return;
    }
    try {
      if (kind === "live") return send(200, "text/html; charset=utf-8", shell("live"));
      if (kind === "console" && (id === "thumb" || id === "shot")) return send(200, "image/jpeg", Object.values(pictures)[0].jpegs[0]);
      if (kind === "console") return send(200, "text/html; charset=utf-8", shell("console"));
      const types = /** @type {{[ext: string]: string}} */ ({ js: "text/javascript", css: "text/css", svg: "image/svg+xml" });
      if (kind === "assets") return send(200, types[path.split(".").pop() ?? ""] ?? "", readFileSync(join(out, path.split("/").slice(3).join("/"))));
    } catch { /* not there */ }
    send(404, "text/plain", "no");
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (ws, req) => {
    const [, kind, id] = (req.url ?? "").split("/");
    if (kind === "console") return playConsole(ws, record("console"), scene.console);
    play(ws, record(id), scenarios[id.split("~")[0]], pictures);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(null)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://localhost:${address.port}`,
    record,
    scene,
    close() {
      for (const c of sockets.clients) c.terminate();
      server.close();
      server.closeAllConnections();
      rmSync(out, { recursive: true });
    },
  };
}

/** @param {import("ws").WebSocket} ws @param {Heard} rec @param {string} scene */
function playConsole(ws, rec, scene) {
  if (scene === "refused") return ws.close(4401);
  if (scene === "lost" && rec.frames++ > 0) return ws.close();
  rec.ws = ws;
  ws.send(JSON.stringify(scene === "empty" ? emptyConsole() : consoleState()));
  if (scene === "lost") setTimeout(() => ws.close(), 200);
  ws.on("message", (data) => {
    const m = JSON.parse(data.toString());
    rec.m.push(m);
    if (m.t === "ping") ws.send(JSON.stringify({ t: "pong", n: m.n }));
    else if (m.a === "figures") {
      ws.send(JSON.stringify(scene === "empty" ? noFigures(m.days) : figures(m.days)));
      ws.send(JSON.stringify({ t: "note", seq: m.seq, ok: true, text: "" }));
    }
    else if (m.a === "history") {
      ws.send(JSON.stringify({ t: "history", items: [{ ...consoleState().history[0], id: "hof_z", created_at: "2026-01-02T03:04:05Z" }], more: "" }));
      ws.send(JSON.stringify({ t: "note", seq: m.seq, ok: true, text: "" }));
    } else if (m.t === "do") ws.send(JSON.stringify({ t: "note", seq: m.seq, ok: true, text: "Done." }));
  });
}

/** @param {import("ws").WebSocket} ws @param {Heard} rec @param {import("./scenarios.js").Scenario} s @param {{[name: string]: Shown}} pictures */
function play(ws, rec, s, pictures) {
  const say = (/** @type {object} */ m) => ws.send(JSON.stringify(m));
  if (s.claim && s.claim !== 200) {
    rec.refused++;
    return ws.close(s.claim === 401 ? 4401 : s.claim === 409 ? 4409 : 4410);
  }
  if (s.then?.drop && rec.ws) return ws.close();
  const again = rec.ws !== null;
  rec.ws = ws;
  if (s.then?.silent) return;
  const shown = pictures[s.picture ?? "signin"];
  const touch = s.touch ?? true;
  const state = s.state?.();
  let number = 0;
  const frame = () => {
    number++;
    ws.send(frameOf(shown, number, number === 1 && !again ? 2 : 0));
  };
  say({ t: "hello", v: 1, you: { id: "v1", mode: "drive" }, touch, look: { width: shown.width, height: shown.height, dpr: 2, mobile: touch } });
  say(state);
  frame();
  say({ t: "fields", tab: "t1", n: 1, focus: s.then?.focus === undefined ? null : shown.fields[s.then.focus].id, fields: shown.fields.map((/** @type {any} */ f) => ({ ...f, read: 1 })) });
  ws.on("message", (data) => {
    const m = JSON.parse(data.toString());
    rec.m.push(m);
    if (m.t === "ping") say({ t: "pong", n: m.n });
    if (m.t === "ack") {
      rec.frames++;
      if (m.number > 1) return;
      // The rest of the story begins when the first picture has been seen.
      if (s.then?.end) say({ t: "end", reason: s.then.end });
      if (s.then?.drop) ws.close();
    }
    if (m.t === "ptr" && (m.k === "up" || m.k === "tap")) frame();
    if (m.t === "edit") say({ t: "caret", id: m.id, seq: m.seq, read: 1, value: m.value, length: m.value.length, selection: m.selection });
  });
}

/** @param {Shown} shown @param {number} number @param {number} flags @param {number} [tab] */
export function frameOf(shown, number, flags, tab = 0) {
  const head = Buffer.alloc(40);
  head.writeUInt8(1, 0);
  head.writeUInt8(flags, 1);
  head.writeUInt16BE(tab, 2);
  head.writeUInt32BE(number, 4);
  head.writeFloatBE(shown.width, 8);
  head.writeFloatBE(shown.height, 12);
  head.writeFloatBE(1, 16);
  return Buffer.concat([head, shown.jpegs[number % shown.jpegs.length]]);
}
