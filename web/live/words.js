// @ts-check
// What stands in front of the picture when there is nothing to see.

/** @typedef {{kind: string, title: string, text: string, action?: [label: string, does: string]}} Curtain */

/** What stands in front of the picture when it has ended, by reason. @type {Record<string, Curtain>} */
export const ends = {
  finished: { kind: "good", title: "All yours, agent", text: "Thank you. The agent has the browser back and carries on. You can close this page.", action: ["Watch it", "watch"] },
  cancelled: { kind: "calm", title: "Called off", text: "This hand-off was cancelled. Nothing more is needed from you." },
  timed_out: { kind: "calm", title: "Time ran out", text: "Nobody finished in time. What was saved is safe, and a to-do keeps it for later." },
  parked: { kind: "calm", title: "Kept for later", text: "The browser rests and its place is saved. It opens again when you do.", action: ["Continue now", "resume"] },
  stopped: { kind: "calm", title: "The browser is closed", text: "This session has ended. You can close this page." },
  revoked: { kind: "shut", title: "This link was revoked", text: "It no longer opens anything. A new one comes with the next message." },
  expired: { kind: "shut", title: "This link has expired", text: "Open the newest message from tapin, or ask for a new link there." },
  moved: { kind: "calm", title: "Open on another device", text: "You moved this to another device, and it goes on there." },
  unknown: { kind: "shut", title: "Open it from your message", text: "For your safety this page opens only through the link in the message that you got." },
  left: { kind: "calm", title: "See you", text: "The browser is as you left it. Come back whenever you like.", action: ["Open again", "watch"] },
  crowded: { kind: "calm", title: "One moment", text: "Too many are looking on. Close it on another device, and open it again.", action: ["Try again", "watch"] },
  slow: { kind: "calm", title: "One moment", text: "Too many tries came from here. It goes on by itself in a minute." },
};
