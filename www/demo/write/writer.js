//! Prompt and output: generates, stops, shows the text and its speed. The prompt and the text so far always stay.

import { complete } from "./completion.js";
import { byId, copyOnClick, showText } from "../page/dom.js";
import { recall, remember } from "../page/memory.js";
import { PromptImages } from "./prompt_images.js";
import { durationInWords, errorInWords, rateInWords } from "../page/words.js";

/**
 * @import { Engine } from "../../dist/index.js"
 * @import { Measures } from "../page/speed_meter.js"
 */

const EXAMPLES = [
  "Once upon a time, there was a little fox who",
  "One rainy morning, Lily found a kite",
  "Tom and his dog were best friends. One day,",
  "Question: What does a cow say?\nAnswer:",
];

const NO_MODEL = "No model is loaded yet.";

export class Writer {
  /** @type {() => Engine | undefined} */
  #engine;
  /** @type {() => Record<string, unknown>} */
  #fields;
  /** @type {(fields: Record<string, unknown>) => void} */
  #onRequest;
  /** @type {PromptImages} */
  images;
  /** @type {AbortController | undefined} */
  #running;
  /** @type {(measures: Measures) => void} */
  #onMeasured;

  #prompt = byId("prompt", HTMLTextAreaElement);
  #generate = byId("generate", HTMLButtonElement);
  #stop = byId("stop", HTMLButtonElement);
  #output = byId("output", HTMLElement);
  #given = byId("given", HTMLElement);
  #written = byId("written", HTMLElement);
  #copy = byId("copy-output", HTMLButtonElement);
  #state = byId("run-state", HTMLElement);
  #error = byId("run-error", HTMLElement);

  /**
   * @param {() => Engine | undefined} engine the current engine
   * @param {() => Engine | undefined} engineOfImages the current engine, if it takes images
   * @param {() => Record<string, unknown>} fields of the request besides the prompt and its images
   * @param {(fields: Record<string, unknown>) => void} onRequest called with all fields of each request
   * @param {(measures: Measures) => void} onMeasured called at the end of a completion
   */
  constructor(engine, engineOfImages, fields, onRequest, onMeasured) {
    this.#engine = engine;
    this.#fields = fields;
    this.#onRequest = onRequest;
    this.#onMeasured = onMeasured;
    this.#prompt.value = recall("prompt") ?? this.#prompt.value;
    const keep = () => remember("prompt", this.images.keptPrompt);
    this.images = new PromptImages(this.#prompt, engineOfImages, keep);
    this.#prompt.addEventListener("input", keep);
    byId("writer", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.generate();
    });
    this.#stop.addEventListener("click", () => this.stop());
    addEventListener("keydown", (event) => {
      if (byId("write-panel", HTMLElement).hidden) return;
      if (event.key === "Escape") this.stop();
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      void this.generate();
    });
    copyOnClick(this.#copy, () => this.#output.textContent ?? "");
    this.#addExamples();
  }

  /** To be called when the engine changes. */
  refresh() {
    // Not `disabled`: that would take away the keyboard focus.
    const idle = this.#running === undefined;
    if (this.#engine() && this.#state.textContent === NO_MODEL) this.#state.textContent = "";
    this.#generate.setAttribute("aria-disabled", String(!(idle && this.#engine())));
    if (idle && document.activeElement === this.#stop) this.#generate.focus();
    this.#stop.disabled = idle;
    this.images.refresh();
    this.#output.classList.toggle("writing", !idle);
  }

  stop() {
    this.#running?.abort();
  }

  /** Requests a completion of the prompt and shows it. */
  async generate() {
    const engine = this.#engine();
    if (this.#running) return;
    if (engine === undefined) {
      this.#state.textContent = NO_MODEL;
      return;
    }
    const running = new AbortController();
    this.#running = running;
    this.#given.textContent = this.#prompt.value;
    this.#written.textContent = "";
    this.#state.textContent = "Reading the prompt…";
    this.#copy.hidden = false;
    showText(this.#error, undefined);
    this.#show(undefined);
    this.refresh();
    // On a phone it may be outside the screen.
    this.#state.scrollIntoView({ block: "nearest" });
    try {
      const prompt = this.#prompt.value;
      const fields = { ...this.#fields(), prompt, ...this.images.fields };
      this.#onRequest(fields);
      let begun = false;
      const end = await complete(engine, fields, running.signal, (text, measures) => {
        if (!begun) this.#state.textContent = "Writing…";
        begun = true;
        this.#written.append(text);
        this.#show(measures);
      });
      this.#show(end);
      this.#onMeasured(end);
      this.#state.textContent =
        end.finishReason === "length" ? "Done: reached the maximum number of tokens." : "Done.";
    } catch (error) {
      const stopped = running.signal.aborted;
      this.#state.textContent = stopped ? "Stopped." : "Failed.";
      if (!stopped) showText(this.#error, errorInWords(error));
    } finally {
      this.#running = undefined;
      this.refresh();
    }
  }

  /** @param {Measures | undefined} measures */
  #show(measures) {
    const usage = measures?.usage;
    const numbers = {
      "first-token": durationInWords(measures?.firstTokenMs),
      prefill: rateInWords(measures?.prefillRate),
      decode: rateInWords(measures?.decodeRate),
      tokens: usage ? `${usage.prompt_tokens} + ${usage.completion_tokens}` : "–",
    };
    for (const [id, text] of Object.entries(numbers)) byId(id, HTMLElement).textContent = text;
  }

  /** Takes the first example as the prompt. */
  pickExample() {
    this.#take(EXAMPLES[0] ?? "");
    this.#prompt.focus();
  }

  /** @param {string} example */
  #take(example) {
    this.images.clear();
    this.#prompt.value = example;
    remember("prompt", example);
  }

  #addExamples() {
    for (const example of EXAMPLES) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "small";
      button.textContent = example.split("\n")[0] ?? example;
      button.addEventListener("click", () => this.#take(example));
      byId("examples", HTMLElement).append(button);
    }
  }
}
