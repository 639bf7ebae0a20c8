// @ts-check
// The phone page: wires the parts, and holds what is known.

import { claim, linkOf, takeToken } from "../assets/claim.js";
import { find } from "../assets/dom.js";
import { holdable } from "../assets/hold.js";
import { Line } from "../assets/socket.js";
import { appClaim, appData, settle } from "../assets/telegram.js";
import { sentence } from "../assets/words.js";
import { Chrome } from "./chrome.js";
import { Keyboard } from "./keyboard.js";
import { Picture } from "./picture.js";
import { screenOf } from "./screen.js";
import { Stage } from "./stage.js";

const app = appData(location);
const token = takeToken(location, history);
const path = `/live/${linkOf(location.pathname)}`;

/** @type {import("./screen.js").Known} */
const known = { line: "claiming", standing: "", online: navigator.onLine, quiet: false, framed: false, asked: false, state: null };
let hello = /** @type {any} */ (null);
let waitTimer = 0, viewTimer = 0, askedTimer = 0;
let resuming = false;
/** What the door said of the time, so that a wrong clock here does no harm. */
let skew = 0;

const drives = () => known.line === "live" && known.state?.can_drive === true;
/** Whether the agent can be asked to let go. */
const mayTake = () => known.state?.driver === "agent" && hello?.you?.mode === "drive";
/** What an action is meant for: a page that missed the end of it must not act on what came after. */
const aim = () => known.state?.handoff?.id ?? "";

/** @param {object} message */
function send(message) {
  return line.send({ h: aim(), ...message });
}

/** @param {string} a @param {object} [args] */
function act(a, args = {}) {
  if (!send({ t: "do", a, ...args })) chrome.toast("Not connected. Nothing was done.");
}

/** @param {object} message */
function input(message) {
  return drives() && send(message);
}

/** What is not needed for the first picture comes after it. @type {import("./fields.js").Fields | null} */
let fields = null;
/** @type {typeof import("./sheets.js") | null} */
let sheets = null;
/** @type {import("./asker.js").Asker | null} */
let asker = null;
let lastFields = /** @type {any} */ (null);
/** The hand-off that was driven over the line before this one, until its fields are told of again. @type {string | null} */
let before = null;
/** Under way, until it is there. @type {Promise<void> | null} */
let furnishing = null;
/** What was tapped before it could be opened. @type {((s: typeof import("./sheets.js")) => void) | null} */
let awaited = null;

const chrome = new Chrome();
let seenTab = -1;
const picture = new Picture(find("#picture"), {
  skipped: acknowledge,
  drawn(frame) {
    const first = frame.first || frame.tab !== seenTab; // the picture that says so may have given way to a newer one
    seenTab = frame.tab;
    if (stage.show(frame, first)) {
      fields?.place(frame);
      aimed(); // its fields may have been told of before it was seen
      render();
    }
    if (!known.framed) {
      known.framed = true;
      render();
      void furnish();
    }
    acknowledge(frame);
  },
});
/** @param {import("./frame.js").Frame} frame */
function acknowledge(frame) {
  const { k } = stage.place;
  line.send({ t: "ack", number: frame.number, w: Math.round(frame.width * k), h: Math.round(frame.height * k), dpr: devicePixelRatio, rtt: Math.round(line.rtt) });
}

const keyboard = new Keyboard(find("#keys"), {
  send: input, drives,
  changed(up) {
    find("#keyboard-button").setAttribute("aria-pressed", String(up));
    fit();
  },
});
const stage = new Stage(find("#stage"), find("#plane"), {
  send: input, drives,
  fingers: () => Boolean(known.state?.layout?.touch ?? hello?.touch),
  refused: () => chrome.nudge(),
  owned: (target) => fields?.owns(target) ?? false,
  touched(mouse) {
    document.documentElement.classList.toggle("mouse", mouse);
    if (mouse && drives() && !fields?.active) keyboard.take();
  },
  moved: tellView,
});

const line = new Line(`${path}/ws`, {
  open() {
    known.line = "live";
    known.standing = "in";
    picture.doubt(true);
    asker?.unheard();
    render();
    tellView();
    line.beat();
  },
  frame: (data) => picture.take(data, line.skew === null ? null : Date.now() + line.skew),
  quiet(now) {
    known.quiet = now;
    if (now) picture.doubt(false);
    render();
  },
  message: hear,
  gone(why, said) {
    if (known.line === "ended") return;
    stage.hands.cancel();
    before ??= aim();
    switch (why) {
      case "expired": case "crowded": return end(why);
      // Whoever sits at the same machine is let in without a token.
      case "refused": return void enter("");
      case "waiting":
        known.standing = "waiting";
        if (/^\d\d$/.test(said)) known.number = Number(said); // the page may have been loaded again
        waitTimer = window.setTimeout(() => line.connect(), 2000);
        break;
      default:
        known.line = known.line === "live" || known.framed ? "lost" : known.line;
        if (line.tries > 2) known.standing = known.standing === "waiting" ? "waiting" : known.framed ? "in" : "offline";
        line.again();
    }
    render();
  },
}, { bearer: "" });

/** @param {any} m */
function hear(m) {
  switch (m.t) {
    case "hello":
      hello = m;
      break;
    case "state": return heard(m);
    case "fields":
      lastFields = m;
      if (before !== null && drives()) {
        fields?.rejoin(before === aim());
        before = null;
      }
      return laid();
    case "caret": return fields?.caret(m);
    case "reached": return fields?.reached(m);
    case "clip": return void clip(m.text);
    case "note":
      asker?.unheard(known.state);
      return chrome.toast(sentence(m.text, m.hint));
    case "end": return end(m.reason);
  }
}

/** @param {any} state */
function heard(state) {
  const before = known.state;
  if (typeof state.now === "number") skew = state.now - Date.now();
  // A hand-off that is over is told of until the next one; nothing is asked by it.
  if (state.handoff && (state.handoff.status ?? "RUNNING") !== "RUNNING") state.handoff = null;
  known.state = state;
  if (resuming && state.handoff) {
    resuming = false;
    act("resume");
  }
  if (before?.handoff?.version !== state.handoff?.version) settled();
  if (before?.can_drive && !state.can_drive) {
    stage.hands.cancel();
    fields?.clear();
    keyboard.input.blur();
  }
  aimed();
  chrome.counting(state.handoff?.countdown_ms);
  if (asker) asker.update(state);
  else if (state.dialog || state.questions?.length) void furnish(); // a page may wait for an answer before it paints
  render();
}

/** @param {string} reason */
function end(reason) {
  known.line = "ended";
  known.end = reason;
  line.close();
  fields?.clear();
  asker?.update(null);
  awaited = null;
  render();
}

function settled() {
  known.asked = false;
  clearTimeout(askedTimer);
}

function done(anyway = false) {
  known.asked = true;
  act("done", anyway ? { anyway } : {});
  askedTimer = window.setTimeout(() => { settled(); render(); }, 15_000);
  render();
}

/** Brings what comes after the first picture; whoever asks meanwhile waits for the same. */
function furnish() {
  furnishing ??= bring().catch(() => {
    // The connection broke; it is tried again.
    furnishing = null;
    setTimeout(furnish, 2000);
    if (awaited) chrome.toast("The connection is poor. Still trying.");
  });
  return furnishing;
}

async function bring() {
  const [late, more] = await Promise.all([import("./fields.js"), import("./sheets.js")]);
  sheets = more;
  asker = new more.Asker(act, upload);
  fields = new late.Fields(find("#fields"), {
    send: input, upload,
    strike: (key, code, m) => keyboard.strike(key, code, m),
    focused: (id) => {
      show(id);
      // Once more when the keyboard has come up and the stage is smaller.
      setTimeout(() => show(id), 350);
    },
    left: () => stage.unreveal(),
    keysUp: () => keyboard.soft,
    keep: () => keyboard.keep(),
  });
  laid();
  if (known.state && known.line === "live") asker.update(known.state);
  awaited?.(sheets);
  awaited = null;
}

/** Lays the controls over the fields. */
function laid() {
  const { shown } = picture;
  if (!lastFields || !fields) return;
  fields.update(lastFields, shown);
  aimed();
}

/** Opens a page where its fields are, once they are told of, it is seen, and it is known to be the same. */
function aimed() {
  const { shown } = picture;
  if (!lastFields || !fields || !shown || !known.state?.tabs?.some((/** @type {any} */ t) => t.id === lastFields.tab && t.index === shown.tab)) return;
  fields.aim(lastFields, shown, stage);
}

/** Opens a sheet, as soon as there are any: the last that was asked for. @param {(s: typeof import("./sheets.js")) => void} open */
function withSheets(open) {
  if (sheets) return open(sheets);
  awaited = open;
  void furnish();
}

/** Shows a field that has the focus. @param {string} id */
function show(id) {
  const rect = picture.shown && fields?.active?.field.id === id ? fields.labelled(id, picture.shown) : null;
  if (rect) stage.reveal(rect);
}

function render() {
  chrome.render(screenOf(known), known.state, skew, mayTake());
  chrome.lens(false, known.state?.layout?.phone === true, stage.shrinks);
}

/** Claims the link, with its token or as the user of the same machine, and goes on from there. @param {string} withToken */
async function enter(withToken) {
  clearTimeout(waitTimer);
  const answer = app ? await appClaim(location.pathname, app) : await claim(path, withToken);
  if (answer.bearer) line.bearer = answer.bearer;
  known.standing = answer.standing;
  known.number = answer.number ?? known.number;
  switch (answer.standing) {
    case "in":
      if (known.line === "claiming" && line.tries === 0) line.connect();
      else line.again();
      if (known.line === "claiming") known.line = "connecting";
      break;
    case "waiting":
      waitTimer = window.setTimeout(() => line.connect(), 2000);
      break;
    case "offline":
      // Nobody answered, so the token has not been used, as far as anybody can tell.
      waitTimer = window.setTimeout(() => enter(withToken), 2000);
      break;
    case "slow":
      waitTimer = window.setTimeout(() => enter(withToken), 60_000);
      break;
  }
  render();
}

/** What this device shows where it has no cookie. @returns {Record<string, string>} */
const shown = () => line.bearer ? { Authorization: `Bearer ${line.bearer}` } : {};

/** @param {string} id */
async function download(id) {
  const href = `${path}/download/${encodeURIComponent(id)}`;
  if (!line.bearer) return save(href, "");
  try {
    const res = await fetch(href, { headers: shown() });
    if (!res.ok) return chrome.toast("That could not be downloaded.");
    const file = URL.createObjectURL(await res.blob());
    save(file, known.state?.downloads?.find((/** @type {any} */ d) => d.id === id)?.name ?? "");
    setTimeout(() => URL.revokeObjectURL(file), 60_000);
  } catch {
    chrome.toast("The connection broke. Nothing was downloaded.");
  }
}

/** @param {string} id @param {FileList} files */
async function upload(id, files) {
  const body = new FormData();
  for (const f of files) body.append("file", f, f.name);
  chrome.toast("Uploading…");
  try {
    const res = await fetch(`${path}/upload?h=${encodeURIComponent(aim())}${id ? `&field=${encodeURIComponent(id)}` : ""}`, { method: "POST", body, credentials: "same-origin", headers: shown() });
    const said = res.ok ? null : await res.json().catch(() => null);
    chrome.toast(res.ok ? "Uploaded." : said?.details ?? "That could not be uploaded.");
  } catch {
    chrome.toast("The connection broke. Nothing was uploaded.");
  }
}

/** @param {string} text */
async function clip(text) {
  try {
    await navigator.clipboard.writeText(text);
    chrome.toast("Copied.");
  } catch {
    // A phone lets only a tap write to its clipboard.
    sheets?.copySheet(text, () => void navigator.clipboard.writeText(text).then(() => chrome.toast("Copied."), () => chrome.toast("This browser does not let us copy.")));
  }
}

async function paste() {
  try {
    const s = await navigator.clipboard.readText();
    if (s) input({ t: "paste", s });
  } catch {
    chrome.toast("Tap into the field and paste there.");
  }
}

/** Saves something on this device. @param {string} href @param {string} name */
function save(href, name) {
  const a = document.createElement("a");
  a.href = href;
  a.download = name;
  a.click();
}

/** A picture of what is seen, made here: nobody else gets it. */
function photo() {
  picture.canvas.toBlob((blob) => {
    if (!blob) return chrome.toast("There is no picture yet.");
    const href = URL.createObjectURL(blob);
    save(href, "tapin.png");
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  });
}

/** Opens the line anew after an end. */
function reopen() {
  known.line = "connecting";
  known.standing = "in";
  known.end = undefined;
  known.state = null;
  line.connect();
  render();
}

function tellView() {
  clearTimeout(viewTimer);
  viewTimer = window.setTimeout(() => line.send({
    t: "view", w: stage.size.width, h: stage.size.height, dpr: devicePixelRatio, zoom: stage.view.zoom, hidden: document.hidden,
    rest: [Math.round(stage.rest.width), Math.round(stage.rest.height)], screen: [screen.width, screen.height], fit: "desktop",
  }), 150);
}

/** Fits the page to what the keyboard leaves of the glass. */
function fit() {
  const seen = window.visualViewport;
  const height = seen?.height ?? innerHeight;
  const covered = Boolean(seen) && innerHeight - height > 120 || Boolean(fields?.active?.text) || keyboard.soft;
  const root = document.documentElement;
  root.style.setProperty("--seen", `${height}px`);
  root.style.setProperty("--above", `${seen?.offsetTop ?? 0}px`);
  root.classList.toggle("covered", covered && !root.classList.contains("mouse"));
  stage.resize(covered);
}

/** @type {Record<string, () => void>} */
const does = {
  keyboard: () => keyboard.toggle(),
  back: () => act("back"),
  forward: () => act("forward"),
  reload: () => act("reload"),
  takeover: () => act("takeover"),
  again: () => chrome.hush(),
  later: () => act("later"),
  extend: () => { act("extend", { minutes: 15 }); chrome.toast("15 more minutes."); },
  copy: () => void send({ t: "copy" }),
  paste: () => void paste(),
  photo,
  more: () => withSheets((s) => s.more(known.state, mayTake(), does)),
  ask: () => withSheets((s) => s.wanted(known.state)),
  tabs: () => withSheets((s) => s.tabsSheet(known.state ?? {}, act)),
  downloads: () => withSheets((s) => s.downloadsSheet(known.state ?? {}, (id) => void download(id))),
  done: () => withSheets((s) => s.confirmDone(done, known.state?.handoff?.attempts > 1 && !(known.state.handoff.countdown_ms > 0))),
  abort: () => withSheets((s) => s.confirm("Abort this hand-off?", "The agent is told that you declined, the login is saved and the browser closes.", "Abort", () => act("abort"))),
  end: () => { act("end"); end("left"); },
  layout() {
    const to = known.state?.layout?.phone ? "desktop" : "phone";
    act("layout", { choice: to });
    chrome.toast(`${to} view`);
  },
  zoom: () => stage.zoomBy(stage.view.zoom > 1.05 ? 1 / stage.view.zoom : 2),
  resume() {
    if (line.open) return act("resume");
    resuming = true;
    reopen();
  },
  watch: reopen,
  stop_countdown: () => act("cancel_countdown"),
};
chrome.listen(does);
holdable(find("#done"), { held: () => done(), asked: does.done });

for (const kind of ["resize", "scroll"]) window.visualViewport?.addEventListener(kind, fit);
addEventListener("resize", fit);
addEventListener("online", () => { known.online = true; render(); if (known.line === "lost") line.connect(); });
addEventListener("offline", () => { known.online = false; render(); });
document.addEventListener("visibilitychange", () => {
  tellView();
  if (document.hidden || known.line === "ended") return;
  if (known.line === "lost") line.connect();
  else line.beat(); // a phone that slept may hold a line that is long dead
});
document.addEventListener("focusin", fit);
document.addEventListener("focusout", () => setTimeout(fit, 60));
new ResizeObserver(fit).observe(find("#stage"));
document.documentElement.classList.toggle("mouse", matchMedia("(hover: hover) and (pointer: fine)").matches);

fit();
render();
if (app) settle();
if (app || token) void enter(token);
else line.connect(); // a page that was loaded again is known by its cookie
