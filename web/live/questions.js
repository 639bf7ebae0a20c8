// @ts-check
// What the sheets say, in one place. Pure.

/** @param {string} [origin] */
export const host = (origin = "") => origin.replace(/^[a-z][a-z0-9+.-]*:\/\//i, "") || "This page";

/** @type {Record<string, string>} */
const permissions = {
  geolocation: "know where you are", notifications: "send notifications", camera: "use a camera", microphone: "use a microphone",
  "clipboard-read": "read the clipboard", midi: "use MIDI devices", "storage-access": "use its cookies inside this page",
};

/** @param {string} name */
export const permission = (name) => permissions[name] ?? `use “${name}”`;
