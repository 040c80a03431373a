//! The search tab: finds passages of the visitor's own text by their meaning. Text and files stay in the page's memory.

import { byId, showText } from "../page/dom.js";
import { errorInWords } from "../page/words.js";
import { passagesOf } from "./passages.js";
import { SearchModel } from "./search_model.js";
import { Vectors } from "./vectors.js";

/**
 * @import { Choice } from "../models/choice.js"
 * @import { Passage } from "./passages.js"
 */

/** So many passages are shown. */
const SHOWN = 5;

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
  model = new SearchModel(() => this.#modelChanged());

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
    this.#stop.addEventListener("click", () => this.#running?.abort());
    const input = byId("search-files", HTMLInputElement);
    byId("search-add", HTMLButtonElement).addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      void this.#addFiles([...(input.files ?? [])]);
      input.value = "";
    });
    this.#refresh();
  }

  /** To be called when the tab is shown: loads the model of the last visit. */
  start() {
    this.model.start();
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
      this.#show(passages, (text) => vectors.similarity(query, text));
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
   * @param {Passage[]} passages
   * @param {(text: string) => number} similarity to the query
   */
  #show(passages, similarity) {
    const found = passages
      .map((passage) => ({ ...passage, score: similarity(passage.text) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, SHOWN);
    this.#results.replaceChildren(...found.map(resultOf));
    const all = passages.length;
    const of = all === 1 ? "1 passage" : `${all} passages`;
    this.#state.textContent = `The ${found.length} closest of ${of}, the closest first.`;
  }
}

const NO_MODEL = "No embedding model is loaded. Choose one above.";

/** @param {File} file */
const isText = (file) => file.type.startsWith("text/") || TEXT_FILE.test(file.name);

/** @param {Passage & { score: number }} found */
function resultOf({ source, text, score }) {
  const item = document.createElement("li");
  const note = document.createElement("small");
  const meter = document.createElement("meter");
  const words = document.createElement("p");
  note.textContent = `${source}, similarity ${score.toFixed(2)} `;
  meter.value = Math.max(0, score);
  meter.ariaLabel = "Similarity";
  words.textContent = text;
  note.append(meter);
  item.append(words, note);
  return item;
}
