//! The gallery: a card for each model of the catalog, first those that are stored, then those that suit the device best. What a choice does is `main.js`'s concern.

import { cache } from "../../dist/index.js";
import { byId } from "../page/dom.js";
import { errorInWords } from "../page/words.js";
import { adviceFor } from "./advice.js";
import { cardOf } from "./card.js";
import { consent } from "./consent.js";
import { ENTRIES, storedOf } from "./entries.js";
import { measuredSpeed } from "./speed.js";

/**
 * @import { CachedFile, EngineInfo } from "../../dist/index.js"
 * @import { Advice } from "./advice.js"
 * @import { Choice } from "./choice.js"
 * @import { Entry } from "./entries.js"
 */

/** So many cards are shown at first. */
const FIRST_CARDS = 8;

/**
 * @typedef {object} GalleryActions
 * @property {(choice: Choice) => void} use
 * @property {(choice: Choice) => void} useForSearch
 * @property {(choice: Choice) => void} useToRank
 * @property {(files: CachedFile[]) => Promise<void>} onDeleted
 */

export class Gallery {
  /** @type {GalleryActions} */
  #actions;
  /** The files that the browser stores. @type {CachedFile[]} */
  #files = [];
  /** Names of choices. @type {(string | undefined)[]} */
  #used = [];
  /** @type {EngineInfo} */
  #info = {};
  /** @type {Map<string, Advice>} */
  #advice = new Map();
  #showsAll = false;

  #list = byId("gallery", HTMLElement);
  #state = byId("gallery-state", HTMLElement);
  #task = byId("gallery-task", HTMLSelectElement);
  #more = byId("gallery-more", HTMLButtonElement);

  /** @param {GalleryActions} actions */
  constructor(actions) {
    this.#actions = actions;
    this.#task.addEventListener("change", () => {
      this.#showsAll = false;
      this.#draw();
    });
    this.#more.addEventListener("click", () => {
      this.#showsAll = true;
      this.#draw();
      this.#list.children.item(FIRST_CARDS)?.querySelector("button")?.focus();
    });
    this.#draw();
  }

  /**
   * Shows what is stored and in use now.
   *
   * @param {(string | undefined)[]} used names of the choices that are in use
   * @param {EngineInfo} info of the engine of the page
   */
  async refresh(used, info) {
    this.#used = used;
    this.#info = info;
    this.#files = await cache.list();
    this.#advice = await adviceFor(info, ENTRIES);
    this.#draw();
  }

  /** Shows the models for a task. @param {string} task */
  showTask(task) {
    this.#task.value = task;
    this.#showsAll = false;
    this.#draw();
  }

  /** @param {Entry} entry */
  async #use(entry) {
    const stored = storedOf(entry, this.#files);
    const isThere = entry.places.length === 0 || stored.kind === "whole";
    if (!isThere && !(await consent(entry, stored, this.#advice.get(entry.name)))) return;
    if (entry.tasks.includes("embedding")) this.#actions.useForSearch(entry.choice);
    else if (entry.tasks.includes("rerank")) this.#actions.useToRank(entry.choice);
    else this.#actions.use(entry.choice);
  }

  /** @param {Entry} entry */
  async #remove(entry) {
    const stored = storedOf(entry, this.#files);
    /** @type {string | undefined} */
    let failure;
    /** @type {CachedFile[]} */
    const deleted = [];
    for (const key of stored.kind === "none" ? [] : stored.keys) {
      try {
        deleted.push(...(await cache.delete(key)));
      } catch (error) {
        failure = errorInWords(error);
      }
    }
    await this.#actions.onDeleted(deleted);
    this.#state.textContent = failure ?? `${entry.title} is deleted.`;
    // The button that was pressed is gone.
    this.#find(entry.name)?.querySelector("button")?.focus();
  }

  /** @param {string} name */
  #find(name) {
    return [...this.#list.children].find(
      (card) => card instanceof HTMLElement && card.dataset.model === name,
    );
  }

  /** The models for the chosen task, in the order of the cards. */
  #sorted() {
    const task = this.#task.value;
    /** @param {Entry} entry */
    const rank = (entry) => {
      if (entry.places.length === 0) return -2;
      if (storedOf(entry, this.#files).kind !== "none") return -1;
      return this.#advice.get(entry.name)?.rank ?? 0;
    };
    return ENTRIES.filter(
      // The model of the page is always there.
      ({ tasks, places }) => task === "" || tasks.includes(task) || places.length === 0,
    ).sort((a, b) => rank(a) - rank(b));
  }

  #draw() {
    const sorted = this.#sorted();
    const shown = this.#showsAll ? sorted : sorted.slice(0, FIRST_CARDS);
    const focused = document.activeElement?.closest("[data-model]")?.getAttribute("data-model");
    const actions = {
      use: (/** @type {Entry} */ entry) => void this.#use(entry),
      remove: (/** @type {Entry} */ entry) => void this.#remove(entry),
    };
    const cards = shown.map((entry) => {
      const state = {
        stored: storedOf(entry, this.#files),
        isCurrent: this.#used.includes(entry.choice.name),
        advice: this.#advice.get(entry.name),
        measured: measuredSpeed(this.#info, entry.choice.name),
      };
      return cardOf(entry, state, actions);
    });
    this.#list.replaceChildren(...cards);
    if (focused) this.#find(focused)?.querySelector("button")?.focus();
    this.#more.hidden = shown.length === sorted.length;
    this.#more.textContent = `Show all ${sorted.length}`;
    const words = `${shown.length} of ${sorted.length} models`;
    if (this.#state.textContent !== words) this.#state.textContent = words;
  }
}
