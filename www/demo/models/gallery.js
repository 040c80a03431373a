//! The gallery: a card for each model of the catalog, those that are stored first. What a choice does is `main.js`'s concern.

import { cache } from "../../dist/index.js";
import { byId } from "../page/dom.js";
import { errorInWords } from "../page/words.js";
import { cardOf } from "./card.js";
import { consent } from "./consent.js";
import { ENTRIES, storedOf } from "./entries.js";
import { expectedSpeed } from "./speed.js";

/**
 * @import { CachedFile, EngineInfo } from "../../dist/index.js"
 * @import { Choice } from "./choice.js"
 * @import { Entry } from "./entries.js"
 */

/** So many cards are shown at first. */
const FIRST_CARDS = 8;

/**
 * @typedef {object} Gallery
 * @property {(used: (string | undefined)[], info: EngineInfo) => Promise<void>} refresh shows what is stored and in use now: names of choices, and what the engine says
 *
 * @typedef {object} GalleryActions
 * @property {(choice: Choice) => void} use
 * @property {(choice: Choice) => void} useForSearch
 * @property {(files: CachedFile[]) => Promise<void>} onDeleted
 */

/**
 * @param {GalleryActions} actions
 * @returns {Gallery}
 */
export function setUpGallery(actions) {
  const list = byId("gallery", HTMLElement);
  const state = byId("gallery-state", HTMLElement);
  const task = byId("gallery-task", HTMLSelectElement);
  const more = byId("gallery-more", HTMLButtonElement);
  /** @type {CachedFile[]} */
  let files = [];
  /** @type {(string | undefined)[]} */
  let used = [];
  /** @type {EngineInfo} */
  let info = {};
  let isWhole = false;

  const cardActions = {
    /** @param {Entry} entry */
    async use(entry) {
      const stored = storedOf(entry, files);
      const isThere = entry.places.length === 0 || stored.kind === "whole";
      if (!isThere && !(await consent(entry, stored))) return;
      if (entry.tasks.includes("embedding")) actions.useForSearch(entry.choice);
      else actions.use(entry.choice);
    },
    /** @param {Entry} entry */
    async remove(entry) {
      const stored = storedOf(entry, files);
      const keys = stored.kind === "none" ? [] : stored.keys;
      /** @type {string | undefined} */
      let failure;
      /** @type {CachedFile[]} */
      const deleted = [];
      for (const key of keys) {
        try {
          deleted.push(...(await cache.delete(key)));
        } catch (error) {
          failure = errorInWords(error);
        }
      }
      await actions.onDeleted(deleted);
      state.textContent = failure ?? `${entry.title} is deleted.`;
      // The button that was pressed is gone.
      find(entry.name)?.querySelector("button")?.focus();
    },
  };
  /** @param {string} name */
  const find = (name) =>
    [...list.children].find((card) => card instanceof HTMLElement && card.dataset.model === name);
  const draw = () => {
    /** @param {Entry} entry */
    const rank = (entry) => (storedOf(entry, files).kind === "none" ? 1 : 0);
    const chosen = ENTRIES.filter(
      // The model of the page is always there.
      ({ tasks, places }) => task.value === "" || tasks.includes(task.value) || places.length === 0,
    );
    const sorted = chosen.toSorted((a, b) => rank(a) - rank(b));
    const shown = isWhole ? sorted : sorted.slice(0, FIRST_CARDS);
    const focused = document.activeElement?.closest("[data-model]")?.getAttribute("data-model");
    list.replaceChildren(
      ...shown.map((entry) =>
        cardOf(
          entry,
          {
            stored: storedOf(entry, files),
            isCurrent: used.includes(entry.choice.name),
            speed: expectedSpeed(info, entry.choice.name, entry.bytes),
          },
          cardActions,
        ),
      ),
    );
    if (focused) find(focused)?.querySelector("button")?.focus();
    more.hidden = shown.length === sorted.length;
    more.textContent = `Show all ${sorted.length}`;
    const words = `${shown.length} of ${sorted.length} models`;
    if (state.textContent !== words) state.textContent = words;
  };
  task.addEventListener("change", () => {
    isWhole = false;
    draw();
  });
  more.addEventListener("click", () => {
    isWhole = true;
    draw();
    list.children.item(FIRST_CARDS)?.querySelector("button")?.focus();
  });
  draw();
  return {
    async refresh(names, engineInfo) {
      used = names;
      info = engineInfo;
      files = await cache.list();
      draw();
    },
  };
}
