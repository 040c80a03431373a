//! The search tab: finds passages of the visitor's own text by their meaning, and puts them in order if there is a reranker. Text and
//! files stay in the page's memory.

import { byId, showText } from "../page/dom.js";
import { errorInWords } from "../page/words.js";
import { passagesOf } from "./passages.js";
import { EMBEDDING, RERANKER, SearchModel, setUpOwnModel } from "./search_model.js";
import { Vectors } from "./vectors.js";

/**
 * @import { Choice } from "../models/choice.js"
 * @import { Passage } from "./passages.js"
 */

/** So many passages are shown. */
const SHOWN = 5;

/** So many of the closest passages a reranker reads. */
const RANKED = 20;

/** Larger files are not text that someone searches here. */
const MAX_FILE_BYTES = 4e6;

/** Files that are read as text, by the ends of their names. */
const TEXT_FILE = /\.(txt|md|markdown|csv|tsv|json|html?|xml|tex|log|js|ts|py|rs)$/i;

export class Search {
  /** @type {{ name: string, text: string }[]} */
  #files = [];
  /** @type {Vectors | undefined} */
  #vectors;
  /** @type {AbortController | undefined} */
  #running;
  #onRequest;
  #onModel;
  /** The embedding model. */
  model = new SearchModel(EMBEDDING, () => this.#modelChanged());
  /** The model that puts in order what was found; it may be missing. */
  ranker = new SearchModel(RERANKER, () => this.#rankerChanged());

  #text = byId("search-text", HTMLTextAreaElement);
  #query = byId("search-query", HTMLInputElement);
  #submit = byId("search-submit", HTMLButtonElement);
  #stop = byId("search-stop", HTMLButtonElement);
  #state = byId("search-state", HTMLElement);
  #error = byId("search-error", HTMLElement);
  #results = byId("search-results", HTMLElement);

  /**
   * @param {(fields: Record<string, unknown>, model: Choice | undefined) => void} onRequest called with the fields of a request
   * @param {() => void} onModel called when the model is ready or gone
   */
  constructor(onRequest, onModel) {
    this.#onRequest = onRequest;
    this.#onModel = onModel;
    byId("search-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#search();
    });
    setUpOwnModel(this.model);
    byId("rank-model-drop", HTMLButtonElement).addEventListener("click", () => {
      void this.ranker.drop();
      byId("rank-choose", HTMLButtonElement).focus();
    });
    this.#stop.addEventListener("click", () => this.#running?.abort());
    const input = byId("search-files", HTMLInputElement);
    byId("search-add", HTMLButtonElement).addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      void this.#addFiles([...(input.files ?? [])]);
      input.value = "";
    });
    this.#refresh();
  }

  /** To be called when the tab is shown: loads the models of the last visit. */
  start() {
    this.model.start();
    this.ranker.start();
  }

  /**
   * Takes text files that were dropped on the page.
   *
   * @param {File[]} files
   * @returns {File[]} the others
   */
  takeFiles(files) {
    void this.#addFiles(files.filter(isText));
    return files.filter((file) => !isText(file) && !file.type.startsWith("image/"));
  }

  #modelChanged() {
    const { engine } = this.model;
    this.#vectors = engine && new Vectors(engine);
    this.#running?.abort();
    this.#refresh();
    this.#onModel();
  }

  #rankerChanged() {
    byId("rank-model-drop", HTMLButtonElement).hidden = this.ranker.engine === undefined;
    this.#running?.abort();
    this.#onModel();
  }

  #refresh() {
    const isReady = this.model.engine !== undefined;
    byId("search-choose", HTMLButtonElement).classList.toggle("quiet", isReady);
    if (isReady && this.#state.textContent === NO_MODEL) this.#state.textContent = "";
    // Not `disabled`: that would take away the keyboard focus.
    this.#submit.setAttribute("aria-disabled", String(!isReady || this.#running !== undefined));
    if (this.#running === undefined && document.activeElement === this.#stop) this.#query.focus();
    this.#stop.disabled = this.#running === undefined;
  }

  /** @param {File[]} files */
  async #addFiles(files) {
    for (const file of files) {
      if (file.size > MAX_FILE_BYTES) {
        this.#state.textContent = `${file.name} is too large: at most 4 MB.`;
        continue;
      }
      this.#files.push({ name: file.name, text: await file.text() });
    }
    const list = byId("search-file-list", HTMLElement);
    list.replaceChildren(
      ...this.#files.map((file) => {
        const item = document.createElement("li");
        const name = document.createElement("span");
        const remove = document.createElement("button");
        name.textContent = file.name;
        remove.type = "button";
        remove.className = "quiet small";
        remove.textContent = "Remove";
        remove.ariaLabel = `Remove ${file.name}`;
        remove.addEventListener("click", () => {
          this.#files = this.#files.filter((it) => it !== file);
          void this.#addFiles([]);
          byId("search-add", HTMLButtonElement).focus();
        });
        item.append(name, remove);
        return item;
      }),
    );
  }

  async #search() {
    const vectors = this.#vectors;
    const query = this.#query.value.trim();
    if (this.#running || query === "") return;
    if (vectors === undefined) {
      this.#state.textContent = NO_MODEL;
      return;
    }
    const passages = [
      ...passagesOf("Your text", this.#text.value),
      ...this.#files.flatMap(({ name, text }) => passagesOf(name, text)),
    ];
    if (passages.length === 0) {
      this.#state.textContent = "There is no text to search: write or paste one, or add a file.";
      return;
    }
    const running = new AbortController();
    this.#running = running;
    showText(this.#error, undefined);
    this.#refresh();
    try {
      const texts = passages.map(({ text }) => text);
      await vectors.add(texts, running.signal, (done, all) => {
        this.#state.textContent = `Reading passage ${done + 1} of ${all}…`;
      });
      await vectors.add([query], running.signal);
      this.#onRequest({ input: [query, ...texts.slice(0, 1)] }, this.model.choice);
      const closest = passages
        .map((passage) => ({ ...passage, score: vectors.similarity(query, passage.text) }))
        .sort((a, b) => b.score - a.score);
      const isRanked = this.ranker.engine !== undefined;
      const found = isRanked
        ? await this.#ranked(query, closest.slice(0, RANKED), running.signal)
        : closest;
      this.#show(found.slice(0, SHOWN), passages.length, isRanked);
    } catch (error) {
      const stopped = running.signal.aborted;
      this.#state.textContent = stopped ? "Stopped." : "Failed.";
      if (!stopped) showText(this.#error, errorInWords(error));
    } finally {
      this.#running = undefined;
      this.#refresh();
    }
  }

  /**
   * The passages in the order of the reranker.
   *
   * @param {string} query
   * @param {Found[]} found
   * @param {AbortSignal} signal
   * @returns {Promise<Found[]>}
   */
  async #ranked(query, found, signal) {
    this.#state.textContent = "Putting what was found in order…";
    const documents = found.map(({ text }) => text);
    const answer = await this.ranker.engine?.rerank({ query, documents }, { signal });
    return (answer?.results ?? []).flatMap(({ index, relevance_score: score }) => {
      const passage = found[index];
      return passage === undefined ? [] : [{ ...passage, score }];
    });
  }

  /**
   * @param {Found[]} found
   * @param {number} all the number of passages
   * @param {boolean} isRanked
   */
  #show(found, all, isRanked) {
    const word = isRanked ? "relevance" : "similarity";
    this.#results.replaceChildren(...found.map((one) => resultOf(one, word)));
    const of = all === 1 ? "1 passage" : `${all} passages`;
    this.#state.textContent = isRanked
      ? `The ${found.length} most relevant of ${of}, the best first.`
      : `The ${found.length} closest of ${of}, the closest first.`;
  }
}

const NO_MODEL = "No embedding model is loaded. Choose one above.";

/** @param {File} file */
const isText = (file) => file.type.startsWith("text/") || TEXT_FILE.test(file.name);

/** @typedef {Passage & { score: number }} Found */

/** @param {Found} found @param {string} word what the score is */
function resultOf({ source, text, score }, word) {
  const item = document.createElement("li");
  const note = document.createElement("small");
  const meter = document.createElement("meter");
  const words = document.createElement("p");
  note.textContent = `${source}, ${word} ${score.toFixed(2)} `;
  meter.value = Math.max(0, score);
  meter.ariaLabel = word;
  words.textContent = text;
  note.append(meter);
  item.append(words, note);
  return item;
}
