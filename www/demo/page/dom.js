//! Functions for elements of the page.

/**
 * The element with `id`, which must be of `type`.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {abstract new (...args: never[]) => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return element;
}

/**
 * Shows `element` with `text` in it; hides it without.
 *
 * @param {HTMLElement} element
 * @param {string | undefined} text
 */
export function showText(element, text) {
  element.textContent = text ?? "";
  element.hidden = text === undefined;
}

/**
 * Copies `text()` to the clipboard when `button` is pressed.
 *
 * @param {HTMLButtonElement} button
 * @param {() => string} text
 */
export function copyOnClick(button, text) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(text()).then(
      () => true,
      () => false,
    );
    button.textContent = done ? "Copied" : "Copying is not allowed";
    setTimeout(() => {
      button.textContent = label;
    }, 1500);
  });
}
