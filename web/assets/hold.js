// @ts-check
// A button that wants to be held: what it does cannot be done by brushing past
// it. A short touch, Enter, Space and a screen reader's tap ask instead.

export const holdMs = 700;

/**
 * @param {HTMLButtonElement} button
 * @param {{held: () => void, asked: () => void}} does
 */
export function holdable(button, does) {
  let timer = 0;
  let began = -1e9;
  let done = false;
  const release = () => {
    window.clearTimeout(timer);
    button.classList.remove("holding");
  };
  button.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    began = e.timeStamp;
    done = false;
    button.classList.add("holding");
    timer = window.setTimeout(() => {
      done = true;
      release();
      navigator.vibrate?.(20);
      does.held();
    }, holdMs);
  });
  for (const kind of ["pointerup", "pointerleave", "pointercancel"]) button.addEventListener(kind, release);
  button.addEventListener("contextmenu", (e) => e.preventDefault());
  button.addEventListener("click", (e) => {
    // The click that ends a hold says nothing new.
    if (done && e.detail > 0 && e.timeStamp - began < 60_000) { done = false; return; }
    does.asked();
  });
}
