//! Shows the models that the browser keeps for this site, and deletes them on request.

import { cache } from "../../dist/index.js";
import { byId } from "../page/dom.js";
import { bytesInWords, errorInWords, fileNameIn } from "../page/words.js";

/** @import { CachedFile } from "../../dist/index.js" */

/**
 * @param {(files: CachedFile[]) => Promise<void>} onDeleted
 * @returns {() => Promise<void>} shows what is stored now
 */
export function setUpStorage(onDeleted) {
  const list = byId("stored", HTMLElement);
  const state = byId("stored-state", HTMLElement);
  const clear = byId("stored-clear", HTMLButtonElement);

  /** @param {() => Promise<CachedFile[]>} run */
  const remove = async (run) => {
    /** @type {string | undefined} */
    let failure;
    try {
      await onDeleted(await run());
    } catch (error) {
      failure = errorInWords(error);
      await show();
    }
    if (failure !== undefined) state.textContent = failure;
    // The button that was pressed is gone.
    if (!list.contains(document.activeElement)) clear.focus();
  };
  const show = async () => {
    const files = await cache.list();
    const { occupiedBytes, quotaBytes } = await cache.size();
    list.replaceChildren(
      ...files.map((file) => row(file, () => remove(() => cache.delete(file.key)))),
    );
    const room = quotaBytes === undefined ? "" : ` of ${bytesInWords(quotaBytes)} for this site`;
    state.textContent =
      files.length === 0 ? "No model is stored." : `${bytesInWords(occupiedBytes)}${room}`;
    clear.hidden = files.length === 0;
  };
  clear.addEventListener("click", () => remove(() => cache.clear()));
  return show;
}

/** The attempts to delete a file that a load which was just aborted still holds, and the time between them. */
const [ATTEMPTS, WAIT_MS] = [40, 50];

/** Deletes what is stored of a model. What another tab loads stays. @param {string} model a URL or a name */
export async function deleteStored(model) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await cache.delete(model);
    } catch (error) {
      const { code } = /** @type {{ code?: string }} */ (error);
      if (code !== "cache_in_use" || attempt === ATTEMPTS) return [];
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
  }
}

/**
 * @param {CachedFile} file
 * @param {() => void} onDelete
 */
function row({ key, url, sizeBytes, storedBytes, complete }, onDelete) {
  const item = document.createElement("li");
  const name = document.createElement("span");
  const button = document.createElement("button");
  name.textContent = fileNameIn(url);
  name.title = key;
  const size = document.createElement("small");
  const whole = sizeBytes === undefined ? "" : ` of ${bytesInWords(sizeBytes)}`;
  size.textContent = complete
    ? bytesInWords(storedBytes)
    : `${bytesInWords(storedBytes)}${whole}, not complete`;
  button.type = "button";
  button.className = "quiet small";
  button.textContent = "Delete";
  button.ariaLabel = `Delete ${name.textContent}`;
  button.addEventListener("click", onDelete);
  name.append(" ", size);
  item.append(name, button);
  return item;
}
