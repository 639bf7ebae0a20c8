// @ts-check
// What both pages say: what is wanted, how long, whose address. Pure.

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

/** How long something takes, in words: "2 min", "1 h 5 min". @param {number} ms */
export function span(ms) {
  const min = Math.round(Math.max(0, ms) / 60_000);
  if (min < 1) return "under a minute";
  if (min < 60) return `${min} min`;
  if (min < 48 * 60) return min % 60 ? `${Math.floor(min / 60)} h ${min % 60} min` : `${min / 60} h`;
  return `${Math.round(min / 1440)} days`;
}

/** How long something still takes, for a screen reader. @param {number} ms */
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

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} KB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** How long ago something was: "now", "5 min ago", "yesterday", "3 May". @param {string | null} at @param {number} now */
export function ago(at, now) {
  const then = Date.parse(at ?? "");
  if (!then) return "never";
  const min = Math.round((now - then) / 60_000);
  if (min < 1) return "now";
  if (min < 60) return `${min} min ago`;
  if (min < 24 * 60) return `${Math.round(min / 60)} h ago`;
  if (min < 48 * 60) return "yesterday";
  if (min < 14 * 24 * 60) return `${Math.round(min / 1440)} days ago`;
  return new Date(then).toLocaleDateString("en", { day: "numeric", month: "short", year: now - then > 300 * 864e5 ? "numeric" : undefined });
}

/** What the door says of a failure, as a person would. @param {string} [text] @param {string} [hint] */
export function sentence(text = "", hint = "") {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return [first && !/[.!?]$/.test(first) ? `${first}.` : first, hint].filter(Boolean).join(" ");
}
