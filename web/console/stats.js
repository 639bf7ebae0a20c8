// @ts-check
// How asking the owner went, in figures and a few bars. It decides nothing and
// counts nothing: the door has. Charts are shapes of our own, with their
// meaning in words beside them.

import { el } from "../assets/dom.js";
import { span } from "../assets/words.js";
import { button, nothing, section } from "./cards.js";

/** @typedef {{count: number, median_s: number, p90_s: number}} Spread */

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...Element} children */
function shape(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** @param {number} s */
const lasts = (s) => s < 100 ? `${s} s` : span(s * 1000);
/** @param {number} n @param {string} one */
const many = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;
const reasons = /** @type {Record<string, string>} */ ({ login: "Sign in", "2fa": "Code", captcha: "Captcha", permission: "Permission", manual_recovery: "Stuck", other: "Other" });
/** @param {string} r */
const why = (r) => reasons[r] ?? r;
/** @param {string} day */
const short = (day) => new Date(`${day}T12:00:00Z`).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });

/** A bar of parts, as wide as their share. @param {Array<[size: number, tone: string]>} parts @param {number} of */
function bar(parts, of) {
  let x = 0;
  return shape("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" },
    shape("rect", { width: 100, height: 1, class: "rest" }),
    ...parts.filter(([n]) => n > 0).map(([n, tone]) => {
      const width = 100 * n / Math.max(of, 1), at = x;
      x += width;
      return shape("rect", { x: at, width, height: 1, class: tone });
    }));
}

/** Each day a column: what was unblocked, and what else was asked. @param {any} f */
function columns(f) {
  const days = f.per_day, most = Math.max(1, ...days.map((/** @type {any} */ d) => d.asked));
  const busiest = days.find((/** @type {any} */ d) => d.asked === most);
  return el("figure", { class: "columns" },
    shape("svg", { viewBox: `0 0 ${days.length * 8} 100`, preserveAspectRatio: "none", role: "img", "aria-label": busiest ? `${f.handoffs.asked} asked in ${many(f.days, "day")}; ${most} on ${short(busiest.day)}, the busiest day.` : "Nothing was asked." },
      ...days.flatMap((/** @type {any} */ d, /** @type {number} */ i) => {
        const high = 100 * d.asked / most, good = 100 * d.unblocked / most;
        return [shape("rect", { x: i * 8 + 1, y: 99, width: 6, height: 1, class: "rest" }),
          shape("rect", { x: i * 8 + 1, y: 100 - high, width: 6, height: high - good, class: "soft" }),
          shape("rect", { x: i * 8 + 1, y: 100 - good, width: 6, height: good, class: "good" })];
      })),
    el("figcaption", { class: "facts" }, el("span", {}, short(f.from)), el("span", {}, `up to ${most} a day`), el("span", {}, "today")));
}

/** @param {string} label @param {string} value @param {string} more */
const tile = (label, value, more) => el("div", { class: "tile" }, el("dt", {}, label), el("dd", {}, el("b", {}, value), el("span", { class: "facts" }, more)));

/** @param {any} h */
function tiles(h) {
  const came = /** @type {Spread} */ (h.time_to_human), done = /** @type {Spread} */ (h.time_to_done);
  const of = (/** @type {Spread} */ s) => s.count ? `9 of 10 within ${lasts(s.p90_s)}` : "not known yet";
  return el("dl", { class: "tiles" },
    tile("Until you come", came.count ? lasts(came.median_s) : "–", of(came)),
    tile("Until it is done", done.count ? lasts(done.median_s) : "–", of(done)),
    tile("Unblocked", h.unblock_rate === null ? "–" : `${Math.round(100 * h.unblock_rate)} %`, h.ended ? `${h.unblocked} of ${h.ended}` : "none has ended yet"),
    tile("Asked", String(h.asked), h.running ? `${h.running} running` : "none running"));
}

const ends = /** @type {Array<[string, string, string]>} */ ([["unblocked", "Unblocked", "good"], ["expired", "Nobody came", "bad"], ["aborted", "You declined", "amber"], ["abandoned", "The agent went on", "soft"], ["lost", "The browser was lost", "ink"]]);

/** @param {any} h */
function ended(h) {
  const some = ends.filter(([key]) => h[key] > 0);
  return some.length ? [el("div", { class: "card" },
    bar(some.map(([key, , tone]) => [h[key], tone]), h.ended),
    el("dl", { class: "legend" }, ...some.map(([key, text, tone]) => el("div", {}, el("dt", {}, el("i", { class: tone }), text), el("dd", {}, String(h[key]))))))] : [];
}

/** @param {string} name @param {any} x @param {number} most @param {string} facts @param {string} [advice] */
const line = (name, x, most, facts, advice) => el("li", {},
  el("div", { class: "name" }, el("span", {}, name), el("b", {}, String(x.asked))),
  bar([[x.unblocked, "good"], [x.asked - x.unblocked, "soft"]], most),
  el("p", { class: "facts" }, facts),
  advice ? el("p", { class: "differs" }, advice) : null);

/** @param {any[]} rows @param {(row: any, most: number) => Element} each */
const list = (rows, each) => rows.length ? [el("ul", { class: "card lines" }, ...rows.map((r) => each(r, rows[0].asked)))] : [];

/** @param {Array<[string, string | number]>} rows */
const facts = (rows) => el("dl", { class: "card pairs" }, ...rows.filter(([, v]) => v !== 0 && v !== "").flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, String(v))]));

/** @param {any[]} sums */
const paid = (sums) => sums.map((s) => `${s.amount} ${s.currency}`).join("\n");

/** @param {any} f @param {number} now */
function parts(f, now) {
  const a = f.approvals, cost = f.cost.filter((/** @type {any} */ m) => m.providers.length);
  const medians = (/** @type {any} */ x) => [x.time_to_human.count ? `you came in ${lasts(x.time_to_human.median_s)}` : "", x.time_to_done.count ? `done in ${lasts(x.time_to_done.median_s)}` : ""];
  return [
    ...(f.handoffs.asked ? [el("section", {}, el("div", { class: "card" }, tiles(f.handoffs), columns(f)))] : []),
    ...section("How it ended", ended(f.handoffs)),
    ...section("What you were asked for", list(f.reasons, (r, most) => line(why(r.reason), r, most, medians(r).filter(Boolean).join(" · ") || "still running"))),
    ...section("Where", list(f.sites, (s, most) => line(s.site, s, most, [s.reasons.map((/** @type {any} */ r) => `${why(r.reason).toLowerCase()} ${r.count}`).join(", "), medians(s)[1]].filter(Boolean).join(" · "), s.advice))),
    ...(f.more_sites ? [el("p", { class: "facts more" }, `and ${many(f.more_sites, "site")} more`)] : []),
    ...section("How long logins last", f.logins.length ? [el("ul", { class: "card lines" }, ...f.logins.map((/** @type {any} */ l) => el("li", {},
      el("div", { class: "name" }, el("span", {}, l.site), el("b", {}, l.ended ? lasts(l.median_s) : "–")),
      el("p", { class: "facts" }, [
        l.ended > 1 ? `${lasts(l.shortest_s)} to ${lasts(l.longest_s)}, ${l.ended} times` : l.ended ? "seen to end once" : "not seen to end yet",
        l.alive_since ? `works for ${span(now - Date.parse(l.alive_since))}` : "", l.stale ? "signed out now" : "",
      ].filter(Boolean).join(" · ")))))] : []),
    ...section("Payments", a.asked ? [facts([["Asked", a.asked], ["Approved by you", a.approved_by_owner], ["Approved by policy", a.approved_by_policy], ["Denied", a.denied], ["Not answered", a.expired], ["Allowed, not used", a.unused], ["Open", a.open], ["Paid", paid(a.paid)], ["Perhaps paid", paid(a.uncertain)]])] : []),
    ...section("Billed browsers", cost.length ? [facts(cost.map((/** @type {any} */ m) => [m.month, `${many(m.minutes, "minute")}${m.cap_minutes ? ` of ${m.cap_minutes}` : ""}`]))] : []),
    ...(f.takeovers ? [el("p", { class: "facts more" }, `You took over ${many(f.takeovers, "time")} unasked; that is not counted above.`)] : []),
    ...(f.kept_days < f.days ? [el("p", { class: "facts more" }, `Figures go back ${many(f.kept_days, "day")}: hand-offs are not kept longer.`)] : []),
  ];
}

/** The figures. @param {any} s @param {number} now */
export function stats(s, now) {
  const f = s.figures;
  if (!f) return [el("p", { class: "nothing", role: "status" }, "Counting")];
  const range = el("div", { class: "range", role: "group", "aria-label": "How far back", "data-key": "range" }, ...[7, 30, 90].map((d) => {
    const b = button(`${d} days`, "figures", String(d), { args: { days: d } });
    b.setAttribute("aria-pressed", String(d === f.days));
    return b;
  }));
  const shown = parts(f, now);
  return [range, ...(f.counting ? [el("p", { class: "differs", role: "status" }, "Older hand-offs are still being counted. The figures grow.")] : []),
    ...(shown.length ? shown : [nothing("chart", "Nothing yet: no agent has asked for you.", "Then this shows how fast you were there, how often it helped, and which sites ask most.")])];
}
