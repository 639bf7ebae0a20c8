// @ts-check
// Whether the page is laid out for this phone or as the agent has it. What a person
// chooses for a site is kept by tapin, not by the phone. Pure, but for the glass.

/** A glass whose short side is longer is no phone. */
const phoneSide = 600;

/** Whether this is a small screen under a finger. */
export const isPhone = () => Math.min(screen.width, screen.height) <= phoneSide && matchMedia("(pointer: coarse)").matches;

/** What this device would have of pages that nobody has chosen a layout for. @returns {"auto" | "desktop"} */
export const wanted = () => isPhone() ? "auto" : "desktop";

/** Whether there is something to choose. @param {any} state */
export const offered = (state) => isPhone() && state?.can_drive === true && !state?.layout?.fixed;
