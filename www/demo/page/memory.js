//! The short strings that the page stores for the next visit, such as the tab, the model, the prompt and the sampling settings. Without
//! storage the page works, but forgets them. Conversations are kept by `../chat/store.js`.

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
    // The storage is full or not allowed: the value is lost with the tab.
  }
}
