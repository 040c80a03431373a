//! What the page keeps for the next visit: the prompt, the sampling, the last URL. Works on without
//! where the browser keeps nothing.

const PREFIX = "inpage-demo ";

/** @param {string} key */
export function recall(key) {
  try {
    return localStorage.getItem(PREFIX + key) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} key
 * @param {string} value
 */
export function remember(key, value) {
  try {
    localStorage.setItem(PREFIX + key, value);
  } catch {
    // Full or forbidden: then it is gone with the tab, as in any page.
  }
}
