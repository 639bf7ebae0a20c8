// @ts-check
// How this device comes to be let in. The token in the address's fragment is
// taken out of history before anything else, and shown to the door once.

/** @typedef {"in" | "waiting" | "expired" | "unknown" | "slow" | "offline"} Standing */
/** @typedef {{standing: Standing, number?: number, mode?: "drive" | "watch", bearer?: string}} Answer */

/** The link of this page. @param {string} path */
export const linkOf = (path) => path.split("/")[2] ?? "";

/**
 * Takes the token out of the address, so that it is in no history, no shared
 * link and no screenshot of the address bar.
 * @param {Location} at @param {History} past @returns {string}
 */
export function takeToken(at, past) {
  const token = new URLSearchParams(at.hash.slice(1)).get("t") ?? "";
  if (at.hash) past.replaceState(null, "", at.pathname);
  // The link opened once more, in a tab that shows this page already.
  window.addEventListener("hashchange", () => at.reload(), { once: true });
  return token;
}

/**
 * Claims a link with its token, or, without one, asks how this device stands.
 * @param {string} path @param {string} token @returns {Promise<Answer>}
 */
export async function claim(path, token) {
  try {
    const res = await fetch(`${path}/claim`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(token ? { token } : {}),
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(10_000),
    });
    const body = await res.json().catch(() => ({}));
    return { standing: standingOf(res.status), number: body.number, mode: body.mode };
  } catch {
    return { standing: "offline" };
  }
}

/** @param {number} status @returns {Standing} */
export function standingOf(status) {
  if (status >= 200 && status < 300) return "in";
  switch (status) {
    case 409: return "waiting";
    case 410: case 404: return "expired";
    case 401: case 403: return "unknown";
    case 429: return "slow";
    default: return "offline";
  }
}
