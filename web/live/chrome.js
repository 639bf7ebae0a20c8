// @ts-check
// What stands around the picture: header, bar, banner, curtain, toast. It shows
// what it is told and says what was tapped.

import { el, find, icon, say } from "../assets/dom.js";
import { hostParts, left, leftAloud } from "../assets/words.js";
import { ask } from "./screen.js";

/** @typedef {import("./screen.js").Screen} Screen */

const curtainIcons = /** @type {Record<string, string>} */ ({ good: "check", calm: "clock", shut: "lock", wait: "", number: "" });

export class Chrome {
  constructor() {
    this.deadline = 0;
    this.skew = 0;
    /** When the hand-off returns by itself; 0 when it does not. */
    this.returns = 0;
    this.hushed = 0;
    this.judged = "";
    this.attempts = 0;
    this.toasts = 0;
    setInterval(() => this.tick(), 250);
  }

  /** @param {Record<string, () => void>} does */
  listen(does) {
    document.addEventListener("click", (e) => {
      const button = e.target instanceof Element ? e.target.closest("[data-do]") : null;
      does[button?.getAttribute("data-do") ?? ""]?.();
    });
    // Whoever is still at work here is not done.
    for (const kind of ["pointerdown", "keydown"]) {
      addEventListener(kind, () => { if (this.returns) { this.returns = 0; does.stop_countdown(); this.tick(); } }, { capture: true });
    }
  }

  /** @param {Screen} screen @param {any} state @param {number} skew @param {boolean} may take over */
  render(screen, state, skew, may) {
    this.skew = skew;
    this.deadline = Date.parse(state?.handoff?.deadline ?? "") || 0;
    const root = document.documentElement;
    root.dataset.bar = screen.bar;
    root.classList.toggle("dim", screen.dim);
    this.header(state);
    this.curtain(screen.curtain);
    this.banner(screen.banner, state?.handoff?.attempts ?? 0, `${state?.page?.origin} ${state?.page?.title}`);
    const tabs = state?.tabs?.length ?? 1;
    say(find("#tab-count"), String(tabs));
    find("#tabs").hidden = tabs < 2;
    find("#tabs").setAttribute("aria-label", tabs === 1 ? "1 open page" : `${tabs} open pages`);
    find("#takeover").hidden = !may;
    root.classList.toggle("loading", Boolean(state?.page?.loading));
    root.classList.toggle("asked", Boolean(state?.handoff));
    this.tick();
  }

  /** How the page is laid out, and whether that can be changed. @param {boolean} offered @param {boolean} phone @param {boolean} shrinks */
  lens(offered, phone, shrinks) {
    find("#layout").hidden = !offered;
    find("#layout").setAttribute("aria-pressed", String(phone));
    find("#zoom-button").hidden = !shrinks;
  }

  /** @param {any} state */
  header(state) {
    const page = state?.page;
    const [before, name, after] = page ? hostParts(page.origin ?? page.host ?? "", page.registrable ?? "") : ["", "tapin", ""];
    say(find("#host-before"), before);
    say(find("#host-name"), name || "New page");
    say(find("#host-after"), after);
    const safe = !page || page.secure !== false;
    find("#lock-icon use").setAttribute("href", safe ? "#lock" : "#unlocked");
    find("#site").classList.toggle("unsafe", !safe);
    say(find("#site-says"), !page ? "" : safe ? "Secure connection to" : "Not secure:");
    const { title, text } = state ? ask(state) : { title: "", text: "" };
    say(find("#want"), title);
    say(find("#why"), text);
    document.title = page ? `${title} · tapin` : "tapin";
    find("#stage").setAttribute("aria-label", page?.title ? `Live page: ${page.title}` : "Live page");
  }

  /** @param {Screen["curtain"]} c */
  curtain(c) {
    const box = find("#curtain");
    const key = JSON.stringify(c);
    if (box.dataset.key === key) return;
    box.dataset.key = key;
    box.hidden = !c;
    find("#app").inert = Boolean(c);
    if (!c) return;
    box.dataset.kind = c.kind;
    const badge = c.kind === "number"
      ? el("div", { class: "number", role: "img", "aria-label": `Your number is ${c.number}` }, ...[...String(c.number ?? "").padStart(2, "0")].map((d) => el("span", { "aria-hidden": "true" }, d)))
      : c.kind === "wait" ? el("span", { class: "spinner", "aria-hidden": "true" })
        : el("span", { class: "badge" }, icon(curtainIcons[c.kind] ?? "clock"));
    const text = c.text || c.kind === "number" ? el("p", {}, c.text, c.kind === "number" ? el("code", {}, `tapin device ${String(c.number ?? "").padStart(2, "0")}`) : null) : null;
    find("#curtain-card").replaceChildren(badge, el("h1", {}, c.title), ...(text ? [text] : []),
      ...(c.action ? [el("button", { type: "button", class: `button wide ${c.kind === "good" ? "plain" : "main"}`, "data-do": c.action[1] }, c.action[0])] : []));
  }

  /** @param {Screen["banner"]} b @param {number} attempts @param {string} [page] which page is shown */
  banner(b, attempts, page = "") {
    if (attempts !== this.attempts) {
      this.attempts = attempts;
      this.hushed = 0;
      this.judged = page;
    } else if (page !== this.judged) this.hushed = attempts; // it was said of another page
    const box = find("#banner");
    const shown = b && !(b.kind === "again" && this.hushed === attempts);
    box.hidden = !shown;
    if (!shown) return;
    box.dataset.kind = b.kind;
    say(find("#banner-title"), b.title);
    if (b.kind !== "countdown") say(find("#banner-text"), b.text);
    const action = find("#banner-action");
    const offers = /** @type {Record<string, [string, string]>} */ ({ crashed: ["Load again", "reload"], again: ["OK", "again"], countdown: ["Not yet", "noop"] });
    const offer = offers[b.kind];
    action.hidden = !offer;
    if (offer) {
      say(action, offer[0]);
      action.dataset.do = offer[1];
    }
  }

  /** A banner that was read. */
  hush() {
    this.hushed = this.attempts;
    find("#banner").hidden = true;
  }

  /** @param {number | undefined} ms until the hand-off returns by itself */
  counting(ms) {
    this.returns = ms ? performance.now() + ms : 0;
    if (ms) document.documentElement.style.setProperty("--countdown", `${ms}ms`);
  }

  tick() {
    const time = find("#time");
    const ms = this.deadline ? this.deadline - Date.now() - this.skew : 0;
    time.hidden = !this.deadline;
    if (this.deadline) {
      say(find("#time-left"), left(ms));
      say(find("#time-aloud"), leftAloud(ms));
      time.classList.toggle("soon", ms < 120_000);
    }
    const banner = find("#banner");
    if (banner.dataset.kind !== "countdown" || banner.hidden) return;
    const s = Math.ceil((this.returns - performance.now()) / 1000);
    if (this.returns) say(find("#banner-text"), s > 0 ? `Returning to the agent in ${s} s` : "Returning to the agent");
    else banner.hidden = true;
  }

  /** @param {string} text */
  toast(text) {
    const box = find("#toast");
    say(box, text ?? "");
    box.classList.add("shown");
    clearTimeout(this.toasts);
    this.toasts = window.setTimeout(() => { box.classList.remove("shown"); say(box, ""); }, 3200);
  }

  /** Somebody tried to act who may only watch: show what would change that. */
  nudge() {
    const bar = find("#watching");
    bar.classList.remove("nudge");
    void bar.offsetWidth;
    bar.classList.add("nudge");
  }
}
