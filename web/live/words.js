// @ts-check
// What the page says, in one place. Pure.

/** @param {string} reason @param {string} [site] */
export function want(reason, site) {
  const on = site ? ` on ${site}` : "";
  switch (reason) {
    case "login": return site ? `Sign in to ${site}` : "Sign in";
    case "2fa": return `Enter the code${on}`;
    case "captcha": return `Solve the check${on}`;
    case "permission": return `Decide about a permission${on}`;
    case "manual_recovery": return `Help the agent along${on}`;
    default: return `The agent needs you${on}`;
  }
}

/** How long something still takes, short: "9:05", "1 h 12". @param {number} ms */
export function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}`;
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

/** The same for a screen reader. @param {number} ms */
export function leftAloud(ms) {
  const min = Math.max(0, Math.ceil(ms / 60_000));
  return min === 1 ? "less than a minute left" : `${min} minutes left`;
}

/**
 * A host in three parts, so that the one that names the owner can stand out:
 * "login.", "chase.com", ":8443".
 * @param {string} origin @param {string} registrable @returns {[string, string, string]}
 */
export function hostParts(origin, registrable) {
  const host = origin.replace(/^[a-z][a-z0-9+.-]*:\/\//i, "").replace(/\/.*$/, "");
  const port = /:\d+$/.exec(host)?.[0] ?? "";
  const name = port ? host.slice(0, -port.length) : host;
  if (!registrable || registrable === name) return ["", name, port];
  return name.endsWith(`.${registrable}`) ? [name.slice(0, -registrable.length), registrable, port] : ["", name, port];
}

/** @typedef {{kind: string, title: string, text: string, action?: [label: string, does: string]}} Curtain */

/** What stands in front of the picture when it has ended, by reason. @type {Record<string, Curtain>} */
export const ends = {
  finished: { kind: "good", title: "All yours, agent", text: "Thank you. The agent has the browser back and carries on. You can close this page." },
  cancelled: { kind: "calm", title: "Called off", text: "This hand-off was cancelled. Nothing more is needed from you." },
  timed_out: { kind: "calm", title: "Time ran out", text: "Nobody finished in time. What was saved is safe, and a to-do keeps it for later." },
  parked: { kind: "calm", title: "Kept for later", text: "The browser rests and its place is saved. It opens again when you do.", action: ["Continue now", "resume"] },
  stopped: { kind: "calm", title: "The browser is closed", text: "This session has ended. You can close this page." },
  revoked: { kind: "shut", title: "This link was revoked", text: "It no longer opens anything. A new one comes with the next message." },
  expired: { kind: "shut", title: "This link has expired", text: "Open the newest message from tapin, or ask for a new link there." },
  moved: { kind: "calm", title: "Open on another device", text: "You moved this to another device, and it goes on there." },
  unknown: { kind: "shut", title: "Open it from your message", text: "For your safety this page opens only through the link in the message that you got." },
  slow: { kind: "calm", title: "One moment", text: "Too many tries came from here. It goes on by itself in a minute." },
  broken: { kind: "shut", title: "This page is out of date", text: "Load it again to go on.", action: ["Load again", "reload"] },
};
