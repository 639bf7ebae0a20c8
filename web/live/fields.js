// @ts-check
// The phone's own controls, laid unseen over the remote fields, so that a tap
// brings the right keypad and picker. They show nothing themselves: what is
// typed is seen where it is, in the picture. A secret is in a control only while
// that has the focus.

import { el } from "../assets/dom.js";
import { form, readable } from "./aim.js";
import { Ledger, unfinished } from "./edit.js";
import { around, fromPage } from "./geometry.js";

/** @typedef {import("./geometry.js").Shot} Shot */
/** @typedef {import("./geometry.js").Rect} Rect */
/** @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Control */
/** @typedef {{field: any, control: Control, ledger: Ledger, text: boolean}} Entry */

/** @typedef {object} Ears
 * @property {(message: object) => boolean} send
 * @property {(key: string, code: string, m: number) => void} strike
 * @property {(id: string, files: FileList) => void} upload
 * @property {(id: string) => void} focused a control has the focus: show its field
 * @property {() => void} left no control has it any more
 * @property {() => boolean} keysUp whether the keyboard stands open without a field
 * @property {() => void} keep keeps the keyboard open for what comes */

const pickers = new Set(["select", "date", "time", "datetime-local", "month", "week", "color", "file"]);
const keypads = /** @type {Record<string, string>} */ ({ email: "email", tel: "tel", url: "url", search: "search", number: "decimal", otp: "numeric" });
/** What a phone may offer by itself: facts of a person, never a secret that it would file under our name. */
const offered = /^(name|given-name|family-name|additional-name|organization|street-address|address-line[123]|address-level[1-4]|country|country-name|postal-code|tel|email|bday)$/;
/** Below this size iOS zooms into a control that gets the focus. */
const leastFont = 16;
/** How long the remote page may take to tell of the focus that it was given. */
const followMs = 1500;

export class Fields {
  /** @param {HTMLElement} layer @param {Ears} ears */
  constructor(layer, ears) {
    this.layer = layer;
    this.ears = ears;
    /** @type {Map<string, Entry>} */
    this.entries = new Map();
    /** @type {Entry | null} */
    this.active = null;
    this.composing = false;
    this.steering = false;
    /** The field that this phone has gone to, and since when the page has known; it may take long to hear of it. */
    this.wanted = { id: "", n: 0, since: Infinity };
    this.asked = 0;
    this.seq = 0;
    document.addEventListener("selectionchange", () => this.moved());
  }

  /** Takes in what the page's fields are now. @param {any} message @param {Shot | null} shot */
  update(message, shot) {
    const seen = new Set();
    for (const field of message.fields ?? []) {
      seen.add(field.id);
      const old = this.entries.get(field.id);
      if (old && old.field.kind === field.kind) this.refresh(old, field);
      else {
        if (old) this.remove(old);
        this.add(field);
      }
    }
    for (const entry of [...this.entries.values()]) if (!seen.has(entry.field.id)) this.remove(entry);
    if (shot) this.place(shot);
    this.steer(message.focus ?? "");
    if (message.ask && message.ask.n !== this.asked) {
      this.asked = message.ask.n;
      this.open(message.ask.id);
    }
  }

  /** Puts every control where its field is in the picture. @param {Shot} shot */
  place(shot) {
    for (const { field, control } of this.entries.values()) {
      const at = fromPage(field, shot);
      const size = Math.max(1, (field.font?.size ?? leastFont) * shot.scale);
      const f = Math.min(1, size / leastFont);
      const pad = (field.font?.pad ?? []).map((/** @type {number} */ p) => `${(p * shot.scale) / f}px`).join(" ");
      Object.assign(control.style, {
        left: `${at.x}px`, top: `${at.y}px`,
        width: `${(field.w * shot.scale) / f}px`, height: `${(field.h * shot.scale) / f}px`,
        transform: f < 1 ? `scale(${f})` : "", fontSize: `${Math.max(size, leastFont)}px`,
        padding: pad, textAlign: field.font?.align ?? "",
      });
    }
  }

  /** Where a field lies in the picture. @param {string} id @param {Shot} shot @returns {(Rect & {font: number}) | null} */
  rect(id, shot) {
    const field = this.entries.get(id)?.field;
    if (!field) return null;
    return { ...fromPage(field, shot), width: field.w * shot.scale, height: field.h * shot.scale, font: (field.font?.size ?? leastFont) * shot.scale };
  }

  /** A field with its labels, in the picture. @param {string} id @param {Shot} shot @returns {(Rect & {font: number}) | null} */
  labelled(id, shot) {
    const rect = this.rect(id, shot), box = this.entries.get(id)?.field.box;
    return rect && box ? { ...rect, ...boxIn(box, shot) } : rect;
  }

  /**
   * What a person is here to fill in: where the focus is, else where something secret
   * is asked for, else where most is. @param {any} message @param {Shot} shot @returns {(Rect & {font: number}) | null}
   */
  part(message, shot) {
    const fields = message.fields ?? [];
    /** @type {Map<string, any[]>} */
    const parts = new Map();
    for (const f of fields) {
      const key = f.part?.id ?? "";
      parts.set(key, [...parts.get(key) ?? [], f]);
    }
    const weight = (/** @type {any[]} */ some) => some.reduce((sum, f) => sum + (f.id === message.focus ? 1000 : 0) + (f.masked || f.kind === "password" || f.kind === "otp" ? 100 : 0) + 1, 0);
    const [chosen] = [...parts.values()].sort((a, b) => weight(b) - weight(a));
    if (!chosen) return null;
    const box = around(chosen.flatMap((f) => [f, f.box, f.part].filter(Boolean)).map((b) => boxIn(b, shot)));
    return box && { ...box, font: Math.min(...chosen.map((f) => f.font?.size ?? leastFont)) * shot.scale };
  }

  /** Opens a page that cannot be read as a whole where it is to be filled in, if nobody has moved the view yet. @param {any} message @param {Shot} shot @param {import("./stage.js").Stage} stage */
  aim(message, shot, stage) {
    const part = this.part(message, shot);
    if (!part || !stage.shot || !stage.fresh) return;
    stage.fresh = false;
    if (part.font * stage.base < readable) stage.put(form(part, stage.size, stage.base, stage.shot));
  }

  /** The field under an event, unless the event is for the page too. @param {EventTarget | null} target */
  owns(target) {
    if (!(target instanceof HTMLElement) || !this.layer.contains(target)) return false;
    return target === this.active?.control || pickers.has(target.dataset.kind ?? "");
  }

  /**
   * The line is another: what was told over the old one and not answered may
   * have been heard or not. For the same hand-off it is told again, whole.
   * @param {boolean} same
   */
  rejoin(same) {
    this.wanted.since = performance.now(); // nobody answers over the old line any more
    for (const entry of this.entries.values()) {
      if (!entry.text || !entry.ledger.pending) continue;
      if (!same) entry.ledger.renounce();
      else if (!(this.composing && entry === this.active)) this.retell(entry);
    }
  }

  /** @param {Entry} entry */
  retell(entry) {
    const control = /** @type {HTMLInputElement} */ (entry.control);
    this.ears.send({ t: "edit", ...entry.ledger.retell(control.value, [control.selectionStart ?? 0, control.selectionEnd ?? 0], () => ++this.seq) });
  }

  /** Lets go of everything that was typed. */
  clear() {
    for (const entry of [...this.entries.values()]) this.remove(entry);
  }

  /** @param {any} m */
  caret(m) {
    const entry = this.entries.get(m.id);
    if (!entry) return;
    const value = entry.ledger.hear(m.masked ? undefined : m.value, m.length, m.read, m.seq ?? this.seq);
    if (entry.field.masked && entry !== this.active && !entry.ledger.pending) return this.forget(entry);
    if (value === null || this.composing && entry === this.active) return;
    this.show(entry, value, m.selection);
  }

  /** @param {any} field */
  add(field) {
    const control = make(field);
    const text = !pickers.has(field.kind);
    const told = field.masked ? undefined : field.value;
    /** @type {Entry} */
    const entry = { field, control, text, ledger: new Ledger(field.id, told, field.length, field.maxlength === 1) };
    if (text) this.listenToText(entry, /** @type {HTMLInputElement} */ (control));
    else control.addEventListener("change", () => this.choose(entry));
    control.addEventListener("focus", () => this.gained(entry));
    control.addEventListener("blur", () => this.lost(entry));
    this.entries.set(field.id, entry);
    this.refresh(entry, field);
    if (text) control.value = told ?? "";
    this.layer.append(control);
  }

  /** @param {Entry} entry @param {HTMLInputElement} control */
  listenToText(entry, control) {
    control.addEventListener("compositionstart", () => { this.composing = true; });
    control.addEventListener("compositionend", () => {
      this.composing = false;
      this.tell(entry);
    });
    control.addEventListener("input", (e) => {
      const held = this.composing && unfinished(/** @type {InputEvent} */ (e).data ?? "", navigator.languages);
      if (!held) this.tell(entry);
    });
    control.addEventListener("keydown", (e) => {
      const many = control instanceof HTMLTextAreaElement;
      if (e.isComposing) return;
      if (e.key === "Enter" && !many) {
        e.preventDefault();
        this.tell(entry);
        this.ears.send({ t: "enter", id: entry.field.id });
      } else if (e.key === "Tab" || e.key === "Escape" || (e.key === "Backspace" && control.value === "") || (!many && /^Arrow(Up|Down)$/.test(e.key))) {
        e.preventDefault();
        this.ears.strike(e.key, e.code, e.shiftKey ? 8 : 0);
      }
    });
  }

  /** @param {Entry} entry @param {any} field */
  refresh(entry, field) {
    entry.field = field;
    const { control } = entry;
    control.setAttribute("aria-label", field.label || field.placeholder || named(field.kind));
    control.disabled = Boolean(field.disabled);
    if (control instanceof HTMLSelectElement) return fillOptions(control, field);
    if (!entry.text) {
      if (control.type !== "file" && control !== document.activeElement) control.value = field.value ?? "";
      return;
    }
    control.readOnly = Boolean(field.readonly);
    if (entry === this.active && (this.composing || entry.ledger.pending)) return;
    const value = entry.ledger.hear(field.masked ? undefined : field.value, field.length, field.read);
    if (value !== null) this.show(entry, value, field.selection);
  }

  /** @param {Entry} entry @param {string} value @param {[number, number]} [selection] */
  show(entry, value, selection) {
    const control = /** @type {HTMLInputElement} */ (entry.control);
    if (control.value !== value) control.value = value;
    if (selection && entry === this.active) control.setSelectionRange(selection[0], selection[1]);
    entry.ledger.place = selection ? selection.join() : entry.ledger.place;
  }

  /** @param {Entry} entry */
  tell(entry) {
    const control = /** @type {HTMLInputElement} */ (entry.control);
    const edit = entry.ledger.tell(control.value, [control.selectionStart ?? 0, control.selectionEnd ?? 0], () => ++this.seq);
    if (edit) this.ears.send({ t: "edit", ...edit });
  }

  /** The caret was moved: the remote one follows, so that it is seen. */
  moved() {
    const { active } = this;
    if (!active?.text || this.composing || document.activeElement !== active.control) return;
    const control = /** @type {HTMLInputElement} */ (active.control);
    if (control.value === active.ledger.base && control.value !== "") this.tell(active);
  }

  /** @param {Entry} entry */
  choose(entry) {
    const { control, field } = entry;
    if (control instanceof HTMLInputElement && control.type === "file") {
      if (control.files?.length) this.ears.upload(field.id, control.files);
      control.value = "";
      return;
    }
    const values = control instanceof HTMLSelectElement ? [...control.selectedOptions].map((o) => o.value) : [control.value];
    this.ears.send({ t: "choose", id: field.id, values });
  }

  /** @param {Entry} entry */
  gained(entry) {
    this.active = entry;
    if (!this.steering) {
      entry.ledger.visit(entry.field.length ?? 0);
      const n = this.wanted.n + 1;
      const told = this.ears.send({ t: "focus", id: entry.field.id, n });
      this.wanted = { id: told ? entry.field.id : "", n, since: Infinity };
    }
    this.ears.focused(entry.field.id);
  }

  /** The page was given the focus that this phone asked for. @param {any} m */
  reached(m) {
    if (m.n === this.wanted.n) this.wanted.since = performance.now();
  }

  /** @param {Entry} entry */
  lost(entry) {
    this.composing = false;
    if (entry.text) this.tell(entry);
    // A secret that the page has not confirmed is kept until it has: it may have to be told again.
    if (entry.field.masked && !entry.ledger.pending) this.forget(entry);
    if (this.active !== entry) return;
    this.active = null;
    if (this.steering) return;
    this.ears.send({ t: "blur", id: entry.field.id });
    this.ears.left();
  }

  /** Lets go of a secret. @param {Entry} entry */
  forget(entry) {
    entry.control.value = entry.ledger.forget(Math.max(entry.control.value.length, entry.field.length ?? 0));
  }

  /** @param {Entry} entry */
  remove(entry) {
    this.entries.delete(entry.field.id);
    const had = document.activeElement === entry.control;
    if (had) {
      // The keyboard would close with its control: something else takes the focus first.
      this.active = null;
      this.ears.keep();
    }
    entry.control.value = "";
    entry.control.remove();
  }

  /** Follows the remote focus while the keyboard is open; it cannot open it. @param {string} id */
  steer(id) {
    for (const { field, control } of this.entries.values()) control.classList.toggle("remote", field.id === id);
    const entry = this.entries.get(id);
    if (id === this.wanted.id) this.wanted.id = "";
    // What is typed here meanwhile is meant for the field it is typed into, however late the page hears of that.
    const waits = this.wanted.id && performance.now() - this.wanted.since < followMs;
    const up = this.ears.keysUp() || Boolean(this.active?.text);
    if (!entry?.text || entry === this.active || waits || !up) return;
    this.steering = true;
    entry.control.focus({ preventScroll: true });
    this.steering = false;
  }

  /** Opens a field's own picker, where the phone lets us. @param {string} id */
  open(id) {
    const control = this.entries.get(id)?.control;
    if (!control) return;
    control.focus({ preventScroll: true });
    try { /** @type {HTMLInputElement} */ (control).showPicker?.(); } catch { /* wants a tap of its own, and is under the finger */ }
  }
}

/** @param {any} box of the page @param {Shot} shot @returns {Rect} */
const boxIn = (box, shot) => ({ ...fromPage(box, shot), width: box.w * shot.scale, height: box.h * shot.scale });

/** @param {string} kind */
const named = (kind) => ({ password: "Password", otp: "One-time code", select: "Choice", file: "File", editable: "Text", textarea: "Text" })[kind] ?? "Field";

/** @param {any} field @returns {Control} */
function make(field) {
  const { kind } = field;
  const silent = { "data-kind": kind, "data-1p-ignore": true, "data-lpignore": "true", "data-bwignore": true, "data-form-type": "other" };
  if (kind === "select") return el("select", { ...silent, multiple: Boolean(field.multiple) });
  if (kind === "file") return el("input", { ...silent, type: "file", multiple: Boolean(field.multiple), accept: field.accept });
  if (pickers.has(kind)) return el("input", { ...silent, type: kind, min: field.min, max: field.max, step: field.step, autocomplete: "off" });
  const long = kind === "textarea" || kind === "editable";
  const auto = field.autocomplete ?? "";
  const attributes = {
    ...silent,
    inputmode: field.inputmode || keypads[kind],
    enterkeyhint: field.enterkeyhint,
    // A one-time code is the one thing a password manager neither offers to keep nor fills in.
    autocomplete: kind === "otp" || kind === "password" || /one-time-code/.test(auto) ? "one-time-code" : offered.test(auto) ? auto : "off",
    autocapitalize: long ? undefined : "off", autocorrect: long ? undefined : "off", spellcheck: "false",
  };
  if (long) return el("textarea", attributes);
  return el("input", { ...attributes, type: kind === "password" ? "password" : "text" });
}

/** @param {HTMLSelectElement} select @param {any} field */
function fillOptions(select, field) {
  const options = field.options ?? [];
  const now = JSON.stringify(options);
  if (select.dataset.options === now) return;
  select.dataset.options = now;
  select.multiple = Boolean(field.multiple);
  /** @type {Map<string, HTMLElement>} */
  const groups = new Map();
  const nodes = [];
  for (const o of options) {
    const option = el("option", { value: o.v, disabled: Boolean(o.disabled), selected: Boolean(o.selected) }, o.label);
    if (!o.group) { nodes.push(option); continue; }
    let group = groups.get(o.group);
    if (!group) {
      group = el("optgroup", { label: o.group });
      groups.set(o.group, group);
      nodes.push(group);
    }
    group.append(option);
  }
  select.replaceChildren(...nodes);
}
