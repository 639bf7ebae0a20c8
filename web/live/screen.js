// @ts-check
// Which of the designed screens is shown, from what is known. Pure.

import { want } from "../assets/words.js";
import { ends } from "./words.js";

/** @typedef {import("./words.js").Curtain} Curtain */
/** @typedef {import("../assets/claim.js").Standing} Standing */

/** @typedef {object} Known
 * @property {"claiming" | "connecting" | "live" | "lost" | "ended"} line
 * @property {Standing | ""} standing
 * @property {number} [number] what a waiting device shows
 * @property {string} [end] why it ended
 * @property {boolean} online
 * @property {boolean} [quiet] whether nothing has been heard for a moment
 * @property {boolean} framed whether a picture has been seen
 * @property {boolean} asked whether this person has said done and awaits the answer
 * @property {any} state as the door told it; null before that */

/** @typedef {object} Screen
 * @property {(Curtain & {number?: number}) | null} curtain in front of everything
 * @property {boolean} dim the picture is old
 * @property {"you" | "watch" | "none"} bar which tools are offered
 * @property {{kind: "countdown" | "again" | "lost" | "crashed" | "checking", text: string, title: string} | null} banner */

/** @param {Known} k @returns {Screen} */
export function screenOf(k) {
  const curtain = curtainOf(k);
  const s = k.state;
  return {
    curtain,
    dim: k.line === "lost" || k.line === "live" && Boolean(k.quiet),
    bar: curtain || !s ? "none" : s.can_drive ? "you" : "watch",
    banner: curtain ? null : bannerOf(k),
  };
}

/** @param {Known} k @returns {Screen["curtain"]} */
function curtainOf(k) {
  if (k.line === "ended") return ends[k.end ?? ""] ?? ends.stopped;
  switch (k.standing) {
    case "waiting":
      if (k.number === undefined) return { ...ends.moved, text: "Another device has this link. To move it here, open the link in your message once more." };
      return {
        kind: "number", number: k.number, title: "Is this you?",
        text: "To open it on this device, confirm this number in your chat or your console, or run",
      };
    case "expired": case "unknown": case "slow": return ends[k.standing];
  }
  if (k.state?.handoff?.parked) return ends.parked;
  if (k.framed) return null; // a place once reached is kept, dimmed
  if (!k.online) return { kind: "calm", title: "You are offline", text: "It opens by itself when the connection is back." };
  if (k.standing === "offline" || k.line === "lost") {
    return { kind: "wait", title: "Reaching the browser", text: "It does not answer yet. Trying again by itself." };
  }
  return { kind: "wait", title: "Opening the browser", text: "" };
}

/** @param {Known} k @returns {Screen["banner"]} */
function bannerOf(k) {
  if (k.line === "lost") {
    return k.online
      ? { kind: "lost", title: "Reconnecting", text: "What you typed is kept." }
      : { kind: "lost", title: "You are offline", text: "What you typed is kept." };
  }
  if (k.line === "live" && k.quiet) return { kind: "lost", title: "Waiting", text: "This may be out of date." };
  const s = k.state, h = s?.handoff;
  if (s?.page?.crashed) return { kind: "crashed", title: "This page has crashed", text: "Loading it again usually helps." };
  if (typeof h?.countdown_ms === "number" && h.countdown_ms > 0) return { kind: "countdown", title: "Looks done", text: "" };
  if (k.asked) return { kind: "checking", title: "Checking", text: "" };
  if (h?.attempts > 1) {
    return { kind: "again", title: "Not done yet", text: "The page does not look done." };
  }
  return null;
}

/** What the header says is wanted. @param {any} state @returns {{title: string, text: string}} */
export function ask(state) {
  const h = state?.handoff;
  if (h) return { title: want(h.reason, h.site), text: state.driver === "other" ? "Someone else is at it right now." : h.instruction || h.task || "" };
  return { title: "The agent is driving", text: "You are watching." };
}
