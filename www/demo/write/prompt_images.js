//! The images of the prompt: each has a placeholder in the text, and both are in the same order.

import { ImageTray } from "../page/images.js";
import { byId } from "../page/dom.js";

/** @import { Engine } from "../../dist/index.js" */

/** The placeholder of an image in the endpoint's prompts. */
const PLACEHOLDER = "<image>";

export class PromptImages {
  #prompt;
  #onChange;
  #tray;

  /**
   * @param {HTMLTextAreaElement} prompt
   * @param {() => Engine | undefined} engine of the current model, if that takes images
   * @param {() => void} onChange called when the text was changed
   */
  constructor(prompt, engine, onChange) {
    this.#prompt = prompt;
    this.#onChange = onChange;
    this.#tray = new ImageTray({
      ...{ prefix: "prompt", what: "prompt", text: prompt, engine },
      state: byId("run-state", HTMLElement),
      placeOfNext: () => placeholdersIn(prompt.value.slice(0, prompt.selectionEnd)),
      onAdd: () => this.#insert(),
      onRemove: (index) => this.#remove(index),
    });
  }

  /** @returns {{ images?: Blob[] }} the field of the request, if there are images */
  get fields() {
    const { files } = this.#tray;
    return files.length > 0 ? { images: files } : {};
  }

  /** The prompt as it is kept for the next visit, which has no images. */
  get keptPrompt() {
    const { value } = this.#prompt;
    return this.#tray.files.length > 0 ? value.replaceAll(PLACEHOLDER, "") : value;
  }

  /** To be called when the model changes. */
  refresh() {
    this.#tray.refresh();
  }

  /** @param {Blob[]} files */
  add(files) {
    this.#tray.add(files);
  }

  /** Another prompt is on the page. */
  clear() {
    this.#tray.take();
  }

  /** Puts a placeholder at the cursor. */
  #insert() {
    const at = this.#prompt.selectionEnd;
    this.#prompt.setRangeText(PLACEHOLDER, at, at, "end");
    this.#onChange();
  }

  /** @param {number} index of the image and its placeholder, which the user may have deleted */
  #remove(index) {
    const parts = this.#prompt.value.split(PLACEHOLDER);
    if (index + 1 >= parts.length) return;
    const at = parts.slice(0, index + 1).join(PLACEHOLDER).length;
    this.#prompt.setRangeText("", at, at + PLACEHOLDER.length, "end");
    this.#onChange();
  }
}

/** @param {string} text */
const placeholdersIn = (text) => text.split(PLACEHOLDER).length - 1;
