// @ts-check
// Making and finding elements, without markup in strings.

/**
 * An element with attributes and children. A function under on… listens; true
 * sets an empty attribute, false and undefined none.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Record<string, any>} [attributes] @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false && value !== null) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== false).map((c) => /** @type {Node | string} */ (c)));
  return node;
}

/** @template {Element} [T=HTMLElement] @param {string} selector @param {ParentNode} [under] @returns {T} */
export function find(selector, under = document) {
  const node = under.querySelector(selector);
  if (!node) throw new Error(`there is no ${selector}`);
  return /** @type {T} */ (/** @type {unknown} */ (node));
}

/** An icon of the page's own set. @param {string} name */
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const use = document.createElementNS(ns, "use");
  use.setAttribute("href", `#${name}`);
  svg.append(use);
  return svg;
}

/** Sets a text only if it is another: a live region speaks at every change. @param {Element} node @param {string} text */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
