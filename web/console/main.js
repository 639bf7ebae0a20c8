// @ts-check
// The console: the owner's inbox on the web. It shows what the door says and
// asks again before anything that cannot be taken back.

import { claim, takeToken } from "../assets/claim.js";
import { el, find, icon, say } from "../assets/dom.js";
import { openSheet } from "../assets/sheet.js";
import { Line } from "../assets/socket.js";
import { left, sentence } from "../assets/words.js";
import { devices, history as past, inbox, logins, sessions } from "./cards.js";

const token = takeToken(location, history);
const tabs = /** @type {const} */ ({ inbox: ["Inbox", inbox], sessions: ["Sessions", sessions], logins: ["Logins", logins], history: ["History", past], devices: ["Devices", devices] });
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
let skew = 0, seq = 0, toasts = 0;
/** Buttons that wait for an answer. @type {Map<number, Element>} */
const waiting = new Map();

const line = new Line("/console/ws", {
  open() { find("#lost").hidden = true; },
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
    case "state": {
      const older = state?.older ?? [];
      state = { handoffs: [], approvals: [], sessions: [], logins: [], history: [], todos: [], links: [], devices: [], ...m, older };
      if (typeof m.now === "number") skew = m.now - Date.now();
      return render();
    }
    case "history":
      if (!state) return;
      state.older.push(...m.items);
      state.more_history = m.more;
      return render();
    case "open": return goto(m.url);
    case "note":
      waiting.get(m.seq)?.removeAttribute("aria-busy");
      waiting.delete(m.seq);
      return toast(sentence(m.text));
    case "end":
      line.close();
      return curtain("Signed out", "Run tapin console for a new sign-in.");
  }
}

function render() {
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
  const seen = new Set(state.history.map((/** @type {any} */ h) => h.id));
  const all = { ...state, history: [...state.history, ...state.older.filter((/** @type {any} */ h) => !seen.has(h.id))] };
  swap(find("#content"), cards(all, Date.now() + skew));
}

/** Puts new cards in place, and leaves open what was open and the focus where it was. @param {HTMLElement} box @param {Node[]} nodes */
function swap(box, nodes) {
  const open = new Set([...box.querySelectorAll("details[open]")].map((d) => d.getAttribute("data-key")));
  const at = document.activeElement instanceof HTMLElement && box.contains(document.activeElement) ? document.activeElement : null;
  const key = at?.closest("[data-key]")?.getAttribute("data-key"), does = at?.dataset.do;
  box.replaceChildren(...nodes);
  for (const d of box.querySelectorAll("details")) d.open = open.has(d.dataset.key ?? "");
  if (!at) return;
  const card = [...box.querySelectorAll("[data-key]")].find((c) => c.getAttribute("data-key") === key);
  const again = card?.querySelector(does ? `[data-do="${does}"]` : "summary");
  if (again instanceof HTMLElement) again.focus();
  else find("#title").focus();
}

/** @param {HTMLElement} button */
function act(button) {
  const { do: a = "", id = "", more = "{}", name } = button.dataset;
  const args = JSON.parse(more);
  const send = () => {
    const n = ++seq;
    const message = a === "history" ? { t: "do", a, seq: n, before: id } : { t: "do", a, id, seq: n, ...args };
    if (!line.send(message)) return toast("Not connected. Nothing was done.");
    const now = [...document.querySelectorAll("[data-do]")].find((b) => b instanceof HTMLElement && b.dataset.do === a && b.dataset.id === id);
    if (!now) return;
    now.setAttribute("aria-busy", "true");
    waiting.set(n, now);
  };
  const ask = asks[a];
  if (!ask) return send();
  const [title, text, label, tone] = ask;
  openSheet({ name: a, title, from: name, text, dismissed: () => {}, actions: [{ label: "Go back", does: () => {} }, { label, tone, does: send }] });
}

/** Nobody will answer what was asked on a line that broke. */
function free() {
  for (const b of waiting.values()) b.removeAttribute("aria-busy");
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

/** @param {string} title @param {string} text */
function curtain(title, text) {
  find("#app").hidden = true;
  find("#curtain").hidden = false;
  find("#curtain-card").replaceChildren(el("span", { class: "badge" }, icon("lock")), el("h1", {}, title), el("p", {}, text));
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
    default: return curtain("Sign in", "Run tapin console in a terminal and open the link that it shows.");
  }
}

document.addEventListener("click", (e) => {
  const button = e.target instanceof Element ? e.target.closest("[data-tab], [data-do]") : null;
  if (!(button instanceof HTMLElement) || button.getAttribute("aria-busy") === "true") return;
  if (button.dataset.do) return act(button);
  tab = /** @type {keyof typeof tabs} */ (button.dataset.tab);
  if (state) render();
  scrollTo(0, 0);
});
setInterval(() => {
  for (const t of document.querySelectorAll("[data-deadline]")) say(t, left(Date.parse(t.getAttribute("data-deadline") ?? "") - Date.now() - skew));
}, 1000);
setInterval(() => { if (state && !document.hidden && !document.querySelector("dialog")) render(); }, 60_000);
document.addEventListener("visibilitychange", () => { if (!document.hidden && line.ws) line.beat(); });

void enter(token);
