// @ts-check
// What a page asks that no picture shows: dialogs, permissions, names and
// passwords of a server, files. Each is a sheet while it is open there, and gone
// when it is answered, here or elsewhere.

import { el, icon } from "../assets/dom.js";
import { dropSheet, openSheet } from "../assets/sheet.js";
import { host, permission } from "./questions.js";

/** @typedef {(action: string, args?: object) => void} Do */

export class Asker {
  /** @param {Do} act @param {(id: string, files: FileList) => void} upload */
  constructor(act, upload) {
    this.act = act;
    this.upload = upload;
    this.key = "";
    /** @type {HTMLDialogElement | null} */
    this.sheet = null;
  }

  /** @param {any} state */
  update(state) {
    const drives = Boolean(state?.can_drive);
    const dialog = drives ? state.dialog : null;
    const question = drives ? state.questions?.[0] : null; // one at a time, in the order they came
    const key = dialog ? `dialog ${dialog.id ?? ""} ${dialog.kind} ${dialog.message}` : question ? `${question.kind} ${question.id}` : "";
    if (key === this.key) return;
    this.key = key;
    dropSheet(this.sheet);
    this.sheet = null;
    if (dialog) this.sheet = this.dialog(dialog);
    else if (question) this.sheet = this.question(question);
  }

  /** An answer given here may have got lost, or was refused: what is still asked is asked again. @param {any} [state] */
  unheard(state) {
    if (!this.sheet || this.sheet.open) return;
    this.key = "";
    if (state) this.update(state);
  }

  /** @param {any} d */
  dialog(d) {
    const from = `${host(d.origin)} says`;
    const answer = (/** @type {boolean} */ accept, /** @type {string} */ text = "") => this.act("dialog", d.kind === "prompt" && accept ? { id: d.id, accept, text } : { id: d.id, accept });
    if (d.kind === "alert") {
      return openSheet({ name: "dialog", title: from, text: d.message, actions: [{ label: "OK", tone: "main", does: () => answer(true) }], dismissed: () => answer(true) });
    }
    if (d.kind === "beforeunload") {
      return openSheet({
        name: "dialog", title: "Leave this page?", from: host(d.origin), text: "What you have entered may not be saved.", dismissed: () => answer(false),
        actions: [{ label: "Stay", does: () => answer(false) }, { label: "Leave", tone: "main", does: () => answer(true) }],
      });
    }
    const body = d.kind === "prompt"
      ? [el("input", { name: "text", value: d.default, class: "line", "aria-label": d.message || "Your answer", autocomplete: "off", autocapitalize: "off" })] : [];
    return openSheet({
      name: "dialog", title: from, text: d.message, body, dismissed: () => answer(false),
      actions: [{ label: "Cancel", does: () => answer(false) }, { label: "OK", tone: "main", does: (f) => answer(true, String(f.get("text") ?? "")) }],
    });
  }

  /** @param {any} q */
  question(q) {
    const from = host(q.origin);
    if (q.kind === "permission") {
      const allow = (/** @type {boolean} */ grant) => this.act("permission", { origin: q.origin, name: q.name, grant });
      return openSheet({
        name: "permission", title: `Allow ${from} to ${permission(q.name)}?`, text: "It would use the browser’s place and devices, not your phone’s.",
        dismissed: () => allow(false),
        actions: [{ label: "Don’t allow", does: () => allow(false) }, { label: "Allow", tone: "main", does: () => allow(true) }],
      });
    }
    if (q.kind === "http_auth") {
      const silent = { autocapitalize: "off", autocorrect: "off", spellcheck: "false", "data-1p-ignore": true, "data-lpignore": "true", "data-bwignore": true, "data-form-type": "other" };
      return openSheet({
        name: "auth", title: `Sign in to ${from}`, text: q.realm ? `The server asks for “${q.realm}”.` : "The server asks for a name and a password.",
        body: [
          el("label", { class: "labelled" }, "Name", el("input", { ...silent, name: "user", class: "line", autocomplete: "off" })),
          el("label", { class: "labelled" }, "Password", el("input", { ...silent, name: "password", type: "password", class: "line", autocomplete: "one-time-code" })),
        ],
        dismissed: () => this.act("auth"),
        actions: [
          { label: "Cancel", does: () => this.act("auth") },
          { label: "Sign in", tone: "main", does: (f) => this.act("auth", { origin: q.origin, username: String(f.get("user") ?? ""), password: String(f.get("password") ?? "") }) },
        ],
      });
    }
    if (q.kind !== "file_chooser") return null;
    const input = el("input", { type: "file", id: "sheet-file", class: "visually-hidden", multiple: Boolean(q.multiple) });
    input.addEventListener("change", () => {
      if (!input.files?.length) return;
      this.upload("", input.files);
      dropSheet(this.sheet);
    });
    return openSheet({
      name: "file", title: q.multiple ? "Choose files" : "Choose a file", text: `${from} wants ${q.multiple ? "files" : "a file"} from you.`,
      body: [el("label", { class: "button main wide", for: "sheet-file" }, icon("upload"), el("span", {}, "From this phone")), input],
      dismissed: () => this.act("no_files"),
      actions: [{ label: "Not now", does: () => this.act("no_files") }],
    });
  }
}
