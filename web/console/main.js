// @ts-check
// The console: the owner's inbox on the web. It shows what the door says and
// asks again before anything that cannot be taken back.

import { claim, takeToken } from "../assets/claim.js";
import { el, find, icon, say } from "../assets/dom.js";
import { openSheet } from "../assets/sheet.js";
import { Line } from "../assets/socket.js";
import { left, sentence } from "../assets/words.js";
import { devices, history as past, inbox, logins, sessions } from "./cards.js";
import { lookups } from "./lookups.js";
import { stats } from "./stats.js";

const token = takeToken(location, history);
const tabs = /** @type {const} */ ({ inbox: ["Inbox", inbox], sessions: ["Sessions", (/** @type {any} */ s, /** @type {number} */ now) => [...sessions(s, now), ...lookups(s, now)]], logins: ["Logins", logins], history: ["History", past], stats: ["Stats", stats], devices: ["Devices", devices] });
/** What is asked about first. The words say what cannot be undone. @type {Record<string, [title: string, text: string, label: string, tone: "main" | "danger"]>} */
const asks = {
  done: ["Hand back to the agent?", "Only if it has been dealt with. The agent carries on at once.", "Done", "main"],
  abort: ["Abort this hand-off?", "The agent is told that you declined, and the browser closes.", "Abort", "danger"],
  approve: ["Approve this payment?", "It can be used once, for this amount on this site.", "Approve", "main"],
  policy_confirm: ["Let the agent pay by itself?", "Within these limits it will not ask you.", "Allow", "main"],
  revoke: ["Revoke this link?", "Whoever has it open is shut out at once.", "Revoke", "danger"],
  end_session: ["End this session?", "What can be saved is saved, and the browser closes.", "End now", "danger"],
  delete_login: ["Delete this login?", "Its saved state is erased. You will have to sign in again.", "Delete", "danger"],
  sign_out: ["Sign out?", "That device needs a new sign-in after this.", "Sign out", "danger"],
};

let tab = /** @type {keyof typeof tabs} */ ("inbox");
let state = /** @type {any} */ (null);
/** How asking went, as it was last told. @type {any} */
let figures = null;
let skew = 0, seq = 0, toasts = 0;
/** All hand-offs that were ever told of, and where the older ones begin. @type {Map<string, any>} */
const told = new Map();
let older = /** @type {string | null} */ (null);
/** What waits for an answer: its button, and the session to open then. @type {Map<number, {button: Element, then?: string}>} */
const waiting = new Map();
/** Whether a finger or a key is down, until when at most, and whether there is something to draw after it. */
let pressing = false, pressed = 0, due = false;

const line = new Line("/console/ws", {
  open() { find("#lost").hidden = true; count(); },
  frame() {},
  message: hear,
  gone(why) {
    find("#lost").hidden = false;
    free();
    if (why === "lost") line.again();
    else void enter("");
  },
});

/** @param {any} m */
function hear(m) {
  switch (m.t) {
    case "state":
      state = { handoffs: [], approvals: [], sessions: [], logins: [], history: [], todos: [], links: [], devices: [], troubles: [], ...m };
      if (typeof m.now === "number") skew = m.now - Date.now();
      for (const h of state.history) told.set(h.id, h);
      return render();
    case "history":
      for (const h of m.items) told.set(h.id, h);
      older = m.more;
      return state && render();
    case "figures":
      figures = m;
      return state && render();
    case "open": return goto(m.url);
    case "note": {
      const was = waiting.get(m.seq);
      was?.button.removeAttribute("aria-busy");
      waiting.delete(m.seq);
      // Who wants to go on with something is taken there.
      if (m.ok && was?.then) return send({ a: "open", id: was.then }, was.button);
      return m.ok && !m.text ? undefined : toast(sentence(m.text, m.hint));
    }
    case "end":
      line.close();
      return curtain("Signed out", "For a new sign-in, run", "tapin console");
  }
}

function render() {
  due = pressing; // a button that is drawn anew under a finger would not be pressed by it
  if (due) return;
  const [title, cards] = tabs[tab];
  find("#curtain").hidden = true;
  find("#app").hidden = false;
  document.body.classList.add("ready");
  say(find("#title"), title);
  for (const b of document.querySelectorAll("[data-tab]")) b.toggleAttribute("aria-current", b.getAttribute("data-tab") === tab);
  const n = state.handoffs.filter((/** @type {any} */ h) => !h.parked).length + state.approvals.length + state.links.flatMap((/** @type {any} */ l) => l.waiting ?? []).length;
  const count = find("#inbox-count");
  count.hidden = n === 0;
  say(count, String(n));
  document.title = n ? `(${n}) tapin` : "tapin";
  warn(state.troubles);
  const history = [...told.values()].sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
  swap(find("#content"), cards({ ...state, history, more_history: older ?? state.more_history, figures }, Date.now() + skew));
}

/** Says what does not work, and says it again only when it is something else. @param {string[]} troubles */
function warn(troubles) {
  const box = find("#trouble"), words = troubles.join("\n");
  box.hidden = words === "";
  if (box.dataset.said === words) return;
  box.dataset.said = words;
  box.replaceChildren(...troubles.map((t) => el("p", {}, t)));
}

/** Puts new cards in place, and leaves open what was open and the focus where it was. @param {HTMLElement} box @param {Node[]} nodes */
function swap(box, nodes) {
  const open = new Set([...box.querySelectorAll("details[open]")].map((d) => d.getAttribute("data-key")));
  const at = document.activeElement instanceof HTMLElement && box.contains(document.activeElement) ? document.activeElement : null;
  const key = at?.closest("[data-key]")?.getAttribute("data-key"), does = at?.dataset.do;
  const pictures = new Map([...box.querySelectorAll("img")].map((i) => [i.closest("[data-key]")?.getAttribute("data-key"), i]));
  box.replaceChildren(...nodes);
  for (const next of box.querySelectorAll("img")) {
    // The old picture stays until the new one is there.
    const old = pictures.get(next.closest("[data-key]")?.getAttribute("data-key"));
    if (!old) continue;
    if (old.getAttribute("src") !== next.getAttribute("src")) old.src = next.src;
    next.replaceWith(old);
  }
  for (const d of box.querySelectorAll("details")) d.open = open.has(d.dataset.key ?? "");
  if (!at) return;
  const card = [...box.querySelectorAll("[data-key]")].find((c) => c.getAttribute("data-key") === key);
  const again = card?.querySelector(does ? `[data-do="${does}"]` : "summary");
  if (again instanceof HTMLElement) again.focus();
  else find("#title").focus();
}

/** Figures are asked for when somebody looks at them; the door does not send them by itself. */
const count = () => tab === "stats" && line.send({ t: "do", seq: ++seq, a: "figures", days: figures?.days ?? 30 });

/** @param {HTMLElement} button */
function act(button) {
  const { do: a = "", id = "", more = "{}", name, then } = button.dataset;
  const wish = a === "history" ? { a, before: id } : { a, id, ...JSON.parse(more) };
  const does = () => {
    // The cards may have been drawn anew while the question was open.
    const now = [...document.querySelectorAll("[data-do]")].find((b) => b instanceof HTMLElement && b.dataset.do === a && b.dataset.id === id);
    send(wish, now ?? button, then);
  };
  const ask = asks[a];
  if (!ask) return does();
  const [title, text, label, tone] = ask;
  openSheet({ name: a, title, from: name, text, dismissed: () => {}, actions: [{ label: "Go back", does: () => {} }, { label, tone, does }] });
}

/** @param {object} wish @param {Element} button @param {string} [then] */
function send(wish, button, then) {
  const n = ++seq;
  if (!line.send({ t: "do", seq: n, ...wish })) return toast("Not connected. Nothing was done.");
  button.setAttribute("aria-busy", "true");
  waiting.set(n, { button, then });
}

/** Nobody will answer what was asked on a line that broke. */
function free() {
  for (const { button } of waiting.values()) button.removeAttribute("aria-busy");
  waiting.clear();
}

/** @param {string} url */
function goto(url) {
  const at = new URL(url, location.href);
  if (at.origin === location.origin && at.pathname.startsWith("/live/")) location.assign(at);
}

/** @param {string} [text] */
function toast(text = "") {
  const box = find("#toast");
  say(box, text);
  box.classList.toggle("shown", text !== "");
  clearTimeout(toasts);
  toasts = window.setTimeout(() => { box.classList.remove("shown"); say(box, ""); }, 3200);
}

/** @param {string} title @param {string} text @param {string} [command] */
function curtain(title, text, command) {
  find("#app").hidden = true;
  find("#curtain").hidden = false;
  find("#curtain-card").replaceChildren(el("span", { class: "badge" }, icon("lock")), el("h1", {}, title), el("p", {}, text), ...(command ? [el("code", {}, command)] : []));
}

/** @param {string} withToken */
async function enter(withToken) {
  const { standing } = await claim("/console", withToken);
  switch (standing) {
    case "in":
      if (line.tries > 0) return line.again();
      line.tries++;
      return line.connect();
    case "offline": return void setTimeout(() => enter(withToken), 2000);
    case "slow":
      curtain("One moment", "Too many tries came from here. It goes on by itself in a minute.");
      return void setTimeout(() => enter(""), 60_000);
    default: return curtain("Sign in", "Open the link that this shows, in a terminal where tapin runs:", "tapin console");
  }
}

/** A press is under way for so long at most, whether its end is told of or not. @param {number} ms */
function press(ms) {
  pressing = true;
  clearTimeout(pressed);
  pressed = window.setTimeout(release, ms);
}

function release() {
  pressing = false;
  clearTimeout(pressed);
  if (due) render();
}

for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => press(5000), { capture: true });
// Its click comes after it, or never.
for (const kind of ["pointerup", "keyup"]) addEventListener(kind, () => { if (pressing) press(300); }, { capture: true });
for (const kind of ["pointercancel", "blur"]) addEventListener(kind, (e) => { if (kind !== "blur" || e.target === window) release(); }, { capture: true });
document.addEventListener("click", (e) => {
  const button = e.target instanceof Element ? e.target.closest("[data-tab], [data-do]") : null;
  if (button instanceof HTMLElement && button.getAttribute("aria-busy") !== "true") choose(button);
  release();
});

/** @param {HTMLElement} button */
function choose(button) {
  if (button.dataset.do) return act(button);
  tab = /** @type {keyof typeof tabs} */ (button.dataset.tab);
  due = Boolean(state);
  count();
  scrollTo(0, 0);
}

setInterval(() => {
  for (const t of document.querySelectorAll("[data-deadline]")) say(t, left(Date.parse(t.getAttribute("data-deadline") ?? "") - Date.now() - skew));
}, 1000);
setInterval(() => { if (state && !document.hidden && !document.querySelector("dialog")) { render(); count(); } }, 60_000);
document.addEventListener("visibilitychange", () => { if (!document.hidden && line.ws) line.beat(); });

void enter(token);
