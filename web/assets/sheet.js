// @ts-check
// A sheet that rises from the thumb's side and asks one thing. It is a dialog
// element, so the browser keeps the focus in it and gives it back after.

import { el, icon } from "./dom.js";

/** @typedef {{label: string, tone?: "main" | "danger" | "plain", icon?: string, does: (form: FormData) => void, hint?: string, stays?: boolean, id?: string}} Action */
/** @typedef {{title: string, text?: string, from?: string, body?: Node[], actions: Action[], dismissed?: () => void, menu?: boolean, name?: string}} Question */

/**
 * Opens a sheet. Closing it by the back of the hand — Escape, a touch beside it —
 * dismisses it, if the question allows that.
 * @param {Question} q @returns {HTMLDialogElement}
 */
export function openSheet(q) {
  const form = el("form", { method: "dialog", autocomplete: "off", novalidate: true });
  const sheet = el("dialog", { class: "sheet", "aria-labelledby": "sheet-title", "data-name": q.name });
  /** What Enter does: two inputs need a button that submits. */
  const main = q.actions.find((a) => a.tone === "main");
  let answered = false;
  const act = (/** @type {Action} */ a) => {
    const data = new FormData(form);
    if (!a.stays) {
      answered = true;
      sheet.close();
    }
    a.does(data);
  };
  const button = (/** @type {Action} */ a) => el("button", {
    type: a === main ? "submit" : "button", class: `${q.menu ? "row" : "button"} ${a.tone ?? "plain"}`, "data-id": a.id, onclick: a === main ? undefined : () => act(a),
  }, a.icon ? icon(a.icon) : null, el("span", {}, a.label, a.hint ? el("small", {}, a.hint) : null));
  form.append(
    el("header", {},
      el("h2", { id: "sheet-title", tabindex: "-1" }, q.title),
      q.from ? el("p", { class: "from" }, q.from) : null,
      q.text ? el("p", { class: "text" }, q.text) : null),
    ...(q.body ?? []),
    el("div", { class: q.menu ? "menu" : "actions" }, ...q.actions.map(button)),
  );
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    if (main) act(main);
  });
  sheet.append(form);
  sheet.addEventListener("cancel", (e) => { if (!q.dismissed) e.preventDefault(); });
  sheet.addEventListener("click", (e) => { if (e.target === sheet && q.dismissed) sheet.close(); });
  sheet.addEventListener("close", () => {
    for (const i of sheet.querySelectorAll("input")) i.value = "";
    sheet.remove();
    if (!answered && !("dropped" in sheet.dataset)) q.dismissed?.();
  });
  document.body.append(sheet);
  sheet.showModal();
  const first = sheet.querySelector("input, select");
  if (first instanceof HTMLElement) first.focus();
  else sheet.querySelector("h2")?.focus();
  return sheet;
}

/** Puts a sheet away without its having been answered here: the question is gone. @param {HTMLDialogElement | null} sheet */
export function dropSheet(sheet) {
  if (!sheet) return;
  sheet.dataset.dropped = "";
  sheet.close();
}
