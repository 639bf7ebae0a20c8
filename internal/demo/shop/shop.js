// The shop's own behaviour: a name for this device, a code that sends itself
// once it is whole, and a leaf that is slid into its place.

if (document.querySelector("#account") && !localStorage.getItem("fern.device"))
  localStorage.setItem("fern.device", crypto.randomUUID());

const code = document.querySelector("input.code");
code?.addEventListener("input", () => {
  if (/^\d{6}$/.test(code.value.replace(/\s/g, ""))) code.form.requestSubmit();
});

const knob = document.querySelector(".knob");
if (knob) {
  const form = knob.closest("form"), piece = document.querySelector(".piece"), words = document.querySelector(".rail p");
  const most = 280 - 56;
  let from = null, at = 0;

  const place = (x) => {
    at = Math.max(0, Math.min(most, Math.round(x)));
    knob.style.left = `${at}px`;
    knob.setAttribute("aria-valuenow", String(at));
    piece.setAttribute("transform", `translate(${at} 0)`);
    words.hidden = at > 20;
  };
  const send = () => {
    form.elements.at.value = String(at);
    form.requestSubmit();
  };
  knob.addEventListener("pointerdown", (e) => {
    from = e.clientX - at;
    knob.setPointerCapture(e.pointerId);
    e.preventDefault();
  });
  knob.addEventListener("pointermove", (e) => { if (from !== null) place(e.clientX - from); });
  knob.addEventListener("pointerup", () => {
    if (from === null) return;
    from = null;
    if (at > 0) send();
  });
  knob.addEventListener("pointercancel", () => { from = null; });
  knob.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 4, ArrowUp: 4, ArrowLeft: -4, ArrowDown: -4 }[e.key];
    if (step) { place(at + step); e.preventDefault(); }
    if (e.key === "Enter") { send(); e.preventDefault(); }
  });
  // Who cannot drag points at the place instead: the middle of the leaf goes there.
  const scene = document.querySelector(".scene");
  scene.addEventListener("click", (e) => {
    place(e.clientX - scene.getBoundingClientRect().left - 34);
    send();
  });
  place(0);
}
