// @ts-check
// The last one-shots as cards: what was looked up, what was seen or read there,
// or in a calm sentence why not. It decides nothing and sends nothing.

import { el, icon } from "../assets/dom.js";
import { ago } from "../assets/words.js";

/**
 * @typedef {object} Lookup
 * @property {string} id @property {"screenshot" | "extract"} kind @property {string} url @property {string} [at]
 * @property {string} [title] @property {string} [final_url] @property {number} [status_code]
 * @property {string} [content] @property {boolean} [photo] @property {string} [image_base64] @property {string} [mime_type]
 * @property {boolean} [truncated] @property {number} [retries] @property {{code: string, message: string}} [error]
 */

/** Only what we made ourselves becomes an address of a picture. @param {Lookup} l */
function picture(l) {
  if (l.photo) return `/console/shot/${encodeURIComponent(l.id)}`;
  if (!l.image_base64 || !/^[A-Za-z0-9+/=]+$/.test(l.image_base64)) return "";
  return `data:${l.mime_type === "image/jpeg" ? "image/jpeg" : "image/png"};base64,${l.image_base64}`;
}

/** An address without what nobody reads. @param {string} url */
const short = (url) => url.replace(/^https?:\/\//i, "").replace(/\/$/, "");

/** @param {Lookup} l */
function body(l) {
  if (l.error) {
    return el("div", { class: "calm" }, icon("eyeoff"), el("p", {}, l.error.message, " ", el("code", {}, l.error.code)));
  }
  const src = picture(l);
  if (src) return el("a", { class: "look", href: src, target: "_blank", rel: "noopener" }, el("img", { alt: `What ${short(l.final_url ?? l.url)} looked like`, src, loading: "lazy" }));
  if (typeof l.content === "string" && l.content !== "") return el("pre", { class: "read", tabindex: "0", role: "region", "aria-label": "What was read" }, l.content);
  return el("p", { class: "facts" }, "Nothing to show.");
}

/** One card. @param {Lookup} l @param {number} now */
export function lookup(l, now) {
  const facts = [
    l.status_code ? `status ${l.status_code}` : "", l.truncated ? (l.kind === "extract" ? "cut off" : "lower quality") : "",
    l.retries ? `tried again ${l.retries === 1 ? "once" : `${l.retries} times`}` : "", l.at ? ago(l.at, now) : "",
  ];
  return el("article", { class: "card lookup", "data-key": l.id },
    el("header", {}, el("h3", {}, l.title || (l.kind === "extract" ? "Read a page" : "Looked at a page"))),
    el("p", { class: "where" }, short(l.final_url || l.url)),
    body(l),
    el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    l.error ? el("div", { class: "offers" }, el("button", { type: "button", class: "button small plain", "data-do": "look_again", "data-id": l.id }, "Retry")) : null);
}

/** The last ones, under a heading of their own. @param {any} s @param {number} now */
export function lookups(s, now) {
  const list = /** @type {Lookup[]} */ (s.lookups ?? []);
  return list.length ? [el("section", { class: "lookups" }, el("h2", {}, "Looked up"), ...list.map((l) => lookup(l, now)))] : [];
}
