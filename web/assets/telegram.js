// @ts-check
// The page inside Telegram: what Telegram hands to it, and the few words it
// says back. No script of Telegram's is loaded for that.

import { standingOf } from "./claim.js";

/** What Telegram handed to this page, if it opened it. @param {Location} at */
export function appData(at) {
  return at.pathname.startsWith("/tg/") ? new URLSearchParams(at.hash.slice(1)).get("tgWebAppData") ?? "" : "";
}

/**
 * Shows the door who opened the page. What it gives back is kept in memory alone.
 * @param {string} path @param {string} data
 * @returns {Promise<import("./claim.js").Answer>}
 */
export async function appClaim(path, data) {
  try {
    const res = await fetch(`${path}/claim`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ data }),
      credentials: "omit",
      cache: "no-store",
      signal: AbortSignal.timeout(10_000),
    });
    const body = await res.json().catch(() => ({}));
    return { standing: standingOf(res.status), number: body.number, mode: body.mode, bearer: body.bearer };
  } catch {
    return { standing: "offline" };
  }
}

/** Says something to the Telegram around this page. @param {string} kind @param {object} [data] */
function say(kind, data) {
  const proxy = /** @type {any} */ (window).TelegramWebviewProxy;
  if (proxy) return void proxy.postEvent(kind, JSON.stringify(data ?? {}));
  if (window.parent !== window) window.parent.postMessage(JSON.stringify({ eventType: kind, eventData: data ?? {} }), "https://web.telegram.org");
}

/** Takes the whole height, and keeps a finger that scrolls the page from closing it. */
export function settle() {
  say("web_app_ready");
  say("web_app_expand");
  say("web_app_setup_swipe_behavior", { allow_vertical_swipe: false });
  say("web_app_setup_closing_behavior", { need_confirmation: false });
}
