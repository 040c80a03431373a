//! A model of the search, for vectors or for the order of passages: an engine of its own, beside that of the chat. It comes back at
//! the next visit.

import { createEngine } from "../../dist/index.js";
import { byId, showText } from "../page/dom.js";
import { errorInWords, fileNameIn } from "../page/words.js";
import { remember } from "../page/memory.js";
import { progressInWords } from "../models/model_view.js";
import { recallChoice, rememberChoice } from "../models/choice.js";
import { SERVICE_WORKER } from "../serving.js";

/**
 * @import { Engine } from "../../dist/index.js"
 * @import { Choice, Use } from "../models/choice.js"
 *
 * @typedef {object} Role
 * @property {Exclude<Use, "model">} use also the beginning of the ids of the elements
 * @property {string} missing said where there is no model
 * @property {(engine: Engine, signal: AbortSignal) => Promise<unknown>} check fails if the model cannot do it
 */

/** The model that finds. @type {Role} */
export const EMBEDDING = {
  use: "search-model",
  missing: "No embedding model is loaded.",
  check: (engine, signal) =>
    engine.embeddings.create({ model: "default", input: "test" }, { signal }),
};

/** The model that puts in order what was found. @type {Role} */
export const RERANKER = {
  use: "rank-model",
  missing: "Without a reranker, the closest passages come first.",
  check: (engine, signal) => engine.rerank({ query: "test", documents: ["test"] }, { signal }),
};

export class SearchModel {
  /** The engine, if the model is ready. @type {Engine | undefined} */
  engine;
  /** The choice that it was made of. @type {Choice | undefined} */
  choice;

  /** @type {AbortController | undefined} */
  #loading;
  #role;
  #onChange;
  #state;
  /** Not a live region: it changes all the time. */
  #progress;
  #error;
  #cancel;

  /**
   * @param {Role} role
   * @param {() => void} onChange called when the model is ready or gone
   */
  constructor(role, onChange) {
    this.#role = role;
    this.#onChange = onChange;
    this.#state = byId(`${role.use}-state`, HTMLElement);
    this.#progress = byId(`${role.use}-progress`, HTMLElement);
    this.#error = byId(`${role.use}-error`, HTMLElement);
    this.#cancel = byId(`${role.use}-cancel`, HTMLButtonElement);
    this.#cancel.addEventListener("click", () => this.#loading?.abort());
  }

  /** Loads the model of the last visit, if there is none yet. */
  start() {
    const last = recallChoice(this.#role.use);
    if (this.engine || this.#loading || last === undefined || "fileName" in last) return;
    void this.load(last.choice);
  }

  /** @param {Choice} choice */
  async load(choice) {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    await this.#letGo();
    this.#state.textContent = `${choice.name} is loading…`;
    showText(this.#error, undefined);
    this.#cancel.hidden = false;
    try {
      const engine = await createEngine({
        model: choice.option,
        workerUrl: new URL("../engine_worker.js", import.meta.url),
        isolatedFrame: SERVICE_WORKER,
        signal: loading.signal,
        onProgress: (progress) => {
          if (this.#loading !== loading || progress.phase === "ready") return;
          this.#progress.textContent = progressInWords(progress);
        },
      });
      await this.#check(engine, loading.signal);
      this.engine = engine;
      this.choice = choice;
      rememberChoice(choice, { use: this.#role.use });
      this.#state.textContent = `${choice.name} is ready.`;
    } catch (error) {
      if (this.#loading !== loading) return;
      this.#state.textContent = this.#role.missing;
      if (!loading.signal.aborted) showText(this.#error, errorInWords(error));
    }
    this.#loading = undefined;
    this.#progress.textContent = "";
    this.#cancel.hidden = true;
    this.#onChange();
  }

  /**
   * Disposes of the engine if it cannot be used.
   *
   * @param {Engine} engine
   * @param {AbortSignal} signal of the load, which another one may replace meanwhile
   * @throws InpageError if its model cannot do what it is for; the reason of `signal` if that is aborted
   */
  async #check(engine, signal) {
    try {
      signal.throwIfAborted();
      await this.#role.check(engine, signal);
      signal.throwIfAborted();
    } catch (error) {
      await engine.dispose();
      throw error;
    }
  }

  /** Disposes of the model; it does not come back. */
  async drop() {
    remember(this.#role.use, "null");
    await this.#letGo();
    this.#state.textContent = this.#role.missing;
  }

  async #letGo() {
    const { engine } = this;
    this.engine = undefined;
    this.choice = undefined;
    await engine?.dispose();
    this.#onChange();
  }
}

/** Lets the visitor give a model of their own. @param {SearchModel} model */
export function setUpOwnModel(model) {
  const url = byId("search-model-url", HTMLInputElement);
  const files = byId("search-model-files", HTMLInputElement);
  byId("search-model-form", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    if (url.value.trim() !== "") void model.load(choiceOfUrl(url.value.trim()));
  });
  byId("search-model-pick", HTMLButtonElement).addEventListener("click", () => files.click());
  files.addEventListener("change", () => {
    const picked = [...(files.files ?? [])];
    if (picked.length > 0) void model.load(choiceOfFiles(picked));
    files.value = "";
  });
}

/**
 * A GGUF file, or a folder: its URL ends with a slash.
 *
 * @param {string} url
 * @returns {Choice}
 */
function choiceOfUrl(url) {
  const isName = /^hf:|^[\w.-]+$/.test(url);
  const name = isName ? (url.split("/").at(-1) ?? url) : fileNameIn(url);
  if (isName) return { name, option: url };
  return { name, option: url.endsWith("/") ? { folder: url } : { url } };
}

/**
 * @param {File[]} files a GGUF file, or all files of a folder
 * @returns {Choice}
 */
function choiceOfFiles(files) {
  const [first] = files;
  const isOne = files.length === 1 && first !== undefined;
  return { name: isOne ? first.name : "the model", option: isOne ? first : { files } };
}
