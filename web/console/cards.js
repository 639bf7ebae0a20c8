// @ts-check
// What the console shows, as elements, from what the door told. It decides
// nothing and sends nothing: a button says by data what it would do.

import { el, icon } from "../assets/dom.js";
import { ago, hostParts, left, size, span, want } from "../assets/words.js";

/** @typedef {{do?: string, id?: string, tone?: string, [more: string]: any}} Offer */

/** @param {string} label @param {string} does @param {string} id @param {Record<string, any>} [more] */
export const button = (label, does, id, more = {}) =>
  el("button", { type: "button", class: `button small ${more.tone ?? "plain"}`, "data-do": does, "data-id": id, "data-more": more.args ? JSON.stringify(more.args) : undefined, "data-name": more.name, "data-then": more.then }, label);

/** Where the page shows another sum than the agent says, a yes is to what the page shows. @param {any} a */
const yes = (a) => {
  const other = a.page && !a.page.agrees && a.page.amount && (a.page.amount !== a.amount || a.page.currency !== a.currency) ? { amount: a.page.amount, currency: a.page.currency } : null;
  const { amount, currency } = other ?? a;
  return button(other ? `Approve ${amount} ${currency}` : "Approve", "approve", a.id, { tone: "main", args: other ?? undefined, name: `${amount} ${currency} to ${a.payee}` });
};

/** @param {string} text @param {string} [tone] */
const chip = (text, tone = "") => el("span", { class: `chip ${tone}` }, text);

/** @param {string} host @param {string} registrable */
function address(host, registrable) {
  const [before, name, after] = hostParts(host, registrable);
  return el("span", { class: "address" }, before, el("b", {}, name), after);
}

/** @param {string} sign @param {string} text @param {string} hint */
export const nothing = (sign, text, hint) => el("div", { class: "nothing" }, el("span", { class: "badge" }, icon(sign)), el("p", {}, text), el("p", { class: "hint" }, hint));

/** @param {string} title @param {Node[]} cards */
export const section = (title, cards) => cards.length ? [el("section", {}, el("h2", {}, title), ...cards)] : [];

/** What waits for the owner. @param {any} s @param {number} now */
export function inbox(s, now) {
  const asks = s.handoffs.map((/** @type {any} */ h) => el("article", { class: "card ask", "data-key": h.id },
    el("header", {}, el("h3", {}, want(h.reason, h.site)), h.parked ? chip("kept for later") : el("span", { class: "chip time", "data-deadline": h.deadline }, left(Date.parse(h.deadline) - now))),
    h.instruction ? el("p", {}, h.instruction) : null,
    el("p", { class: "facts" }, [h.task, h.attempts > 1 ? `asked ${h.attempts} times` : "", h.watched ? "open now" : "", ago(h.created_at, now)].filter(Boolean).join(" · ")),
    el("div", { class: "offers" },
      h.parked ? button("Continue", "resume", h.id, { tone: "main", args: { version: h.version }, then: h.session_id }) : button("Open", "open", h.session_id, { tone: "main" }),
      h.parked ? null : button("Done", "done", h.id, { args: { version: h.version }, name: h.site }),
      button("+15 min", "extend", h.id, { args: { minutes: 15 } }),
      h.parked ? null : button("Later", "later", h.id, { args: { version: h.version } }),
      button("Abort", "abort", h.id, { tone: "danger", args: { version: h.version }, name: h.site }))));
  const money = s.approvals.map((/** @type {any} */ a) => el("article", { class: "card ask", "data-key": a.id },
    el("header", {}, el("h3", {}, `Pay ${a.amount} ${a.currency}`), el("span", { class: "chip time", "data-deadline": a.deadline }, left(Date.parse(a.deadline) - now))),
    el("p", {}, `To ${a.payee}${a.description ? ` for ${a.description}` : ""}.`),
    a.page
      ? el("p", { class: a.page.agrees ? "agrees" : "differs" }, a.page.agrees
        ? `The page at ${host(a.page.origin)} shows the same amount.`
        : a.page.amount ? `The page at ${host(a.page.origin)} shows ${a.page.amount} ${a.page.currency}.` : `We could not read the amount on ${host(a.page.origin)}.`)
      : el("p", { class: "differs" }, "We could not read the page. This is only what the agent says."),
    el("div", { class: "offers" }, yes(a), button("Deny", "deny", a.id))));
  const waiting = s.links.flatMap((/** @type {any} */ l) => (l.waiting ?? []).map((/** @type {number} */ n) => el("article", { class: "card ask", "data-key": `${l.id}-${n}` },
    el("header", {}, el("h3", {}, "A device wants in"), el("span", { class: "digits", "aria-label": `It shows ${n}` }, String(n).padStart(2, "0"))),
    el("p", {}, `It has the link to ${l.host} and shows this number. Move the link only if it is in your hand.`),
    el("div", { class: "offers" }, button(`Move to ${String(n).padStart(2, "0")}`, "move", l.id, { tone: "main", args: { number: n } }), button("Revoke the link", "revoke", l.id, { tone: "danger", name: l.host })))));
  const todos = s.todos.map((/** @type {any} */ t) => el("article", { class: "card line-card", "data-key": t.id },
    el("div", {}, el("h3", {}, t.text), el("p", { class: "facts" }, [t.site, ago(t.created_at, now)].filter(Boolean).join(" · "))),
    el("button", { type: "button", class: "tool round", "data-do": "todo_done", "data-id": t.id, "aria-label": `Done: ${t.text}` }, icon("check"))));
  const all = [...section("Needs you now", [...waiting, ...money, ...asks]), ...section("To do", todos)];
  return all.length ? all : [nothing("inbox", "Nothing needs you.", "When an agent is stuck, it asks here.")];
}

/** The open browsers. @param {any} s @param {number} now */
export function sessions(s, now) {
  if (!s.sessions.length) return [nothing("window", "No browser is open.", "One opens when an agent starts a session.")];
  return [el("div", { class: "grid" }, ...s.sessions.map((/** @type {any} */ x) => el("article", { class: "card session", "data-key": x.id },
    x.thumb === null || x.thumb === undefined
      ? el("div", { class: "thumb private" }, icon("eyeoff"), el("span", {}, x.driver === "agent" ? "No picture now" : "No pictures while it is yours"))
      : el("img", { class: "thumb", alt: "", src: `/console/thumb/${encodeURIComponent(x.id)}?n=${x.thumb}`, loading: "lazy", width: 480, height: 270 }),
    el("header", {}, el("h2", { class: "h3" }, x.title || "New page"), chip({ agent: "agent drives", owner: "you drive" }[/** @type {"agent"} */ (x.driver)] ?? "waits for you", x.driver === "agent" ? "good" : "amber")),
    el("p", {}, address(x.host, x.registrable)),
    el("p", { class: "facts" }, [x.provider, x.context ? `login ${x.context}` : "", `since ${ago(x.started_at, now).replace(" ago", "")}`].filter(Boolean).join(" · ")),
    el("div", { class: "offers" }, button("Open", "open", x.id, { tone: "main" }), button("End", "end_session", x.id, { tone: "danger", name: x.host })))))];
}

const fresh = /** @type {Record<string, [string, string]>} */ ({ verified: ["fresh", "good"], unverified: ["not checked", ""], stale: ["signed out", "bad"] });

/** The saved logins. @param {any} s @param {number} now */
export function logins(s, now) {
  if (!s.logins.length) return [nothing("key", "No saved logins yet.", "A login that you make in a hand-off can be kept for next time.")];
  return s.logins.map((/** @type {any} */ l) => {
    const p = l.policy, [text, tone] = fresh[l.freshness] ?? [l.freshness, ""];
    return el("article", { class: "card", "data-key": l.name },
      el("header", {}, el("h2", { class: "h3" }, l.name), chip(text, tone)),
      el("p", {}, address(l.domain, l.domain)),
      el("p", { class: "facts" }, [`used ${ago(l.last_used, now)}`, `checked ${ago(l.last_verified, now)}`, size(l.bytes), l.in_use ? "in use" : ""].filter(Boolean).join(" · ")),
      p ? el("p", { class: p.pending ? "differs" : "" }, [
        `${p.pending ? "Someone asks that the agent may pay" : "The agent may pay"} up to ${p.max_amount} ${p.currency} by itself`,
        p.monthly_budget ? `, ${p.spent} of ${p.monthly_budget} this month` : "", ".",
      ].join("")) : null,
      el("div", { class: "offers" },
        p?.pending ? button("Allow it", "policy_confirm", l.name, { tone: "main", args: { proposal: p.proposal }, name: `${p.max_amount} ${p.currency}` }) : null,
        p?.pending ? button("Do not", "policy_deny", l.name, { args: { proposal: p.proposal } }) : null,
        button("Check now", "check_login", l.name),
        button("Delete", "delete_login", l.name, { tone: "danger", name: l.name })));
  });
}

const outcomes = /** @type {Record<string, [string, string]>} */ ({ FINISHED: ["done", "good"], CANCELLED: ["called off", ""], TIMED_OUT: ["nobody came", "bad"] });
const fields = /** @type {Record<string, string>} */ ({ url: "Address", title: "Title", origin: "Site", cookie_count: "Cookies", local_storage_keys: "Stored keys", session_storage_keys: "Stored keys of the tab", dom_fingerprint: "Content" });

/** What was asked before, and what came of it. @param {any} s @param {number} now */
export function history(s, now) {
  if (!s.history.length) return [nothing("clock", "No hand-offs yet.", "Each one is kept here with what it changed, and with no secret.")];
  const took = (/** @type {any} */ h) => span(Date.parse(h.finished_at) - Date.parse(h.created_at));
  return [
    ...s.history.map((/** @type {any} */ h) => {
      const [text, tone] = outcomes[h.status] ?? [h.status, ""];
      return el("details", { class: "card", "data-key": h.id },
        el("summary", {}, el("span", { class: "summary" }, el("span", { class: "h3" }, want(h.reason, h.site)), chip(text, tone)),
          el("span", { class: "facts" }, [ago(h.created_at, now), h.finished_at ? `took ${took(h)}` : "", h.attempts > 1 ? `${h.attempts} tries` : ""].filter(Boolean).join(" · "))),
        el("p", {}, h.summary),
        h.delta?.length ? el("dl", {}, ...h.delta.flatMap((/** @type {any} */ d) => [el("dt", {}, fields[d.field] ?? d.field), el("dd", {}, d.change)])) : null,
        el("p", { class: "facts" }, h.verified === true ? "We checked that it worked." : h.verified === false ? "Our check did not hold." : "Nothing was checked: no condition was given."));
    }),
    ...(s.more_history ? [button("Show older", "history", s.more_history)] : []),
  ];
}

/** Links, and what is signed in. @param {any} s @param {number} now */
export function devices(s, now) {
  const links = s.links.map((/** @type {any} */ l) => el("article", { class: "card line-card", "data-key": l.id },
    el("div", {}, el("h3", {}, l.host), el("p", { class: "facts" }, [l.this_device ? "on this device" : "", l.mode === "drive" ? "may drive" : "may watch", l.claimed ? "opened" : "not opened yet", `ends in ${span(Date.parse(l.expires_at) - now)}`].filter(Boolean).join(" · "))),
    button("Revoke", "revoke", l.id, { tone: "danger", name: l.host })));
  const signed = s.devices.map((/** @type {any} */ d) => el("article", { class: "card line-card", "data-key": d.id },
    el("div", {}, el("h3", {}, d.name), el("p", { class: "facts" }, [d.this_device ? "this device" : "", `seen ${ago(d.seen_at, now)}`].filter(Boolean).join(" · "))),
    button("Sign out", "sign_out", d.id, { name: d.name })));
  return [...section("Signed in", signed), ...section("Links into browsers", links)];
}

/** @param {string} [origin] */
const host = (origin = "") => origin.replace(/^[a-z][a-z0-9+.-]*:\/\//i, "");
