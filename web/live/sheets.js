// @ts-check
// The sheets that the tools open. Fetched after the first picture.

import { el, icon } from "../assets/dom.js";
import { dropSheet, openSheet } from "../assets/sheet.js";
import { size } from "../assets/words.js";
import { host } from "./questions.js";
import { ask } from "./screen.js";

export { Asker } from "./asker.js";

/** @typedef {import("./asker.js").Do} Do */

/** @param {(anyway: boolean) => void} done @param {boolean} again whether a check did not hold before */
export function confirmDone(done, again) {
  openSheet({
    name: "done", title: "Hand back to the agent?", dismissed: () => {},
    text: again ? "The page did not look done. It is checked once more, or you decide without." : "It gets the browser as it is now and carries on.",
    actions: [
      again ? { label: "Done anyway", does: () => done(true) } : { label: "Not yet", does: () => {} },
      { label: "Done", tone: "main", does: () => done(false), id: "confirm-done" },
    ],
  });
}

/** @param {string} title @param {string} text @param {string} label @param {() => void} does */
export function confirm(title, text, label, does) {
  openSheet({ name: "confirm", title, text, dismissed: () => {}, actions: [{ label: "Go back", does: () => {} }, { label, tone: "danger", does }] });
}

/** A text that only a tap may copy. @param {string} text @param {() => void} copy */
export function copySheet(text, copy) {
  openSheet({ name: "copy", title: "Copy this text", text: text.length > 400 ? `${text.slice(0, 400)}…` : text, dismissed: () => {}, actions: [{ label: "Copy", tone: "main", does: copy }] });
}

/** The whole of what is asked. @param {any} state */
export function wanted(state) {
  const { title, text } = ask(state);
  const h = state?.handoff, page = state?.page ?? {};
  const rows = [["Page", page.title], ["Address", page.origin], ["Task", h?.task], ["Connection", page.secure === false ? "Not secure: others could read what you type" : "Secure"]]
    .filter(([, v]) => v).flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]);
  openSheet({ name: "ask", title, text, body: [el("dl", {}, ...rows)], dismissed: () => {}, actions: [{ label: "OK", tone: "main", does: () => {} }] });
}

/** @param {any} state @param {boolean} may take over @param {Record<string, () => void>} does */
export function more(state, may, does) {
  const drives = Boolean(state?.can_drive), h = state?.handoff;
  /** @type {import("../assets/sheet.js").Action[]} */
  const actions = [];
  const add = (/** @type {string} */ id, /** @type {string} */ label, /** @type {string} */ sign, hint = "", /** @type {"plain" | "danger"} */ tone = "plain") =>
    actions.push({ label, icon: sign, tone, hint, id, does: () => does[id]() });
  if (may) add("takeover", "Take over now", "hand", "The agent waits until you are done");
  if (h && drives) add("extend", "15 more minutes", "plus");
  if (h && drives) add("later", "Later", "moon", "Keeps your place and reminds you");
  if (drives) {
    add("forward", "Forward", "forward");
    add("reload", "Load the page again", "reload");
    add("copy", "Copy", "copy", "What is selected on the page");
    add("paste", "Paste", "paste");
  }
  add("photo", "Screenshot", "camera", "Saved on this phone only");
  if (state?.downloads?.length) add("downloads", `Downloads (${state.downloads.length})`, "download");
  add("zoom", "Zoom in or out", "zoom");
  add("end", "Leave", "leave", h ? "It waits for you until the time is over" : "Stop watching");
  if (h && drives) add("abort", "Abort", "close", "Tell the agent that you will not do this", "danger");
  openSheet({ name: "more", title: "More", menu: true, actions, dismissed: () => {} });
}

/** The open tabs, to choose from. @param {any} state @param {Do} act */
export function tabsSheet(state, act) {
  /** @type {HTMLDialogElement} */
  let sheet;
  const rows = (state.tabs ?? []).map((/** @type {any} */ tab) => el("li", {},
    el("button", { type: "button", class: "row plain", "aria-current": tab.active ? "page" : undefined, onclick: () => { dropSheet(sheet); act("tab", { id: tab.id }); } },
      el("span", {}, tab.title || "New page", el("small", {}, host(tab.origin)))),
    el("button", { type: "button", class: "tool", "aria-label": `Close ${tab.title || "this tab"}`, onclick: () => { dropSheet(sheet); act("close_tab", { id: tab.id }); } }, icon("close"))));
  sheet = openSheet({ name: "tabs", title: rows.length === 1 ? "One open page" : `${rows.length} open pages`, body: [el("ul", { class: "tabs" }, ...rows)], actions: [], dismissed: () => {} });
  return sheet;
}

/** What has been downloaded. @param {any} state @param {(id: string) => void} fetch */
export function downloadsSheet(state, fetch) {
  const said = /** @type {Record<string, string>} */ ({ in_progress: "Downloading", completed: "Ready", canceled: "Stopped" });
  return openSheet({
    name: "downloads", title: "Downloads", menu: true, dismissed: () => {},
    actions: (state.downloads ?? []).map((/** @type {any} */ d) => ({
      label: d.name, icon: "download", hint: [said[d.state] ?? d.state, d.bytes ? size(d.bytes) : ""].filter(Boolean).join(" · "),
      does: () => { if (d.state === "completed") fetch(d.id); },
    })),
  });
}
