//! Images that belong to a text that is being written: picked, pasted, or taken with the camera, and shown with their tokens.
//! Drops on the page are passed to `add`.

import { byId } from "./dom.js";

/** @import { Engine } from "../../dist/index.js" */

/** More make a request that no small model understands. */
const MAX_IMAGES = 8;

const NO_IMAGES = "This model takes no images. Load one with its projector.";

/**
 * The cost of an image: its tokens, and the time that the model needs for it.
 *
 * @typedef {{ tokens: number, readMs: number }} Cost
 */

/**
 * @typedef {object} TrayOptions
 * @property {string} prefix of the ids of its elements
 * @property {string} what they belong to, such as "message"
 * @property {HTMLTextAreaElement} text
 * @property {HTMLElement} state says what is wrong
 * @property {() => Engine | undefined} engine of the current model, if that takes images
 * @property {() => number} [placeOfNext] the index among the images where the next one is added; at the end without it
 * @property {() => void} [onAdd] called before an image is shown
 * @property {(index: number) => void} [onRemove] called before an image is removed with its button
 */

export class ImageTray {
  /** @type {{ file: Blob, element: HTMLElement }[]} */
  #images = [];
  /** @type {TrayOptions} */
  #options;
  #tray;
  #tools;

  /** @param {TrayOptions} options */
  constructor(options) {
    this.#options = options;
    const { prefix, text } = options;
    this.#tray = byId(`${prefix}-images`, HTMLElement);
    this.#tools = byId(`${prefix}-image-tools`, HTMLElement);
    for (const input of this.#tools.querySelectorAll("input")) {
      // The button in front of each input of files opens it.
      const button = byId(input.id.replace(/-file$/, ""), HTMLButtonElement);
      button.addEventListener("click", () => input.click());
      input.addEventListener("change", () => {
        this.add([...(input.files ?? [])]);
        input.value = "";
      });
    }
    text.addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])].filter(isImage);
      if (files.length === 0) return;
      event.preventDefault();
      this.add(files);
    });
  }

  /** The files of the images, in their order. */
  get files() {
    return this.#images.map(({ file }) => file);
  }

  /** To be called when the model changes. */
  refresh() {
    const { engine, state } = this.#options;
    this.#tools.hidden = engine() === undefined;
    if (engine() && state.textContent === NO_IMAGES) state.textContent = "";
  }

  /** @param {Blob[]} files */
  add(files) {
    const { engine, state, what } = this.#options;
    if (engine() === undefined) {
      state.textContent = NO_IMAGES;
      return;
    }
    const room = MAX_IMAGES - this.#images.length;
    if (files.length > room) state.textContent = `A ${what} has at most ${MAX_IMAGES} images.`;
    for (const file of files.slice(0, room)) void this.#add(file);
  }

  /** The images; none are left. */
  take() {
    const { files } = this;
    this.#images = [];
    this.#show();
    return files;
  }

  /** @param {Blob} file */
  async #add(file) {
    const element = document.createElement("li");
    const note = document.createElement("small");
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "quiet small";
    remove.textContent = "Remove";
    const image = { file, element };
    remove.addEventListener("click", () => {
      const index = this.#images.indexOf(image);
      this.#options.onRemove?.(index);
      this.#images.splice(index, 1);
      this.#show();
      this.#options.text.focus();
    });
    note.textContent = "Reading…";
    element.append(thumbnail(file), note, remove);
    this.#images.splice(this.#options.placeOfNext?.() ?? this.#images.length, 0, image);
    this.#options.onAdd?.();
    this.#show();
    const engine = this.#options.engine();
    if (engine === undefined) return;
    try {
      const { tokens, readMs } = await costOf(engine, file);
      note.textContent = `${tokens} tokens, read in ${(readMs / 1000).toFixed(1)} s`;
    } catch (error) {
      note.textContent = /** @type {Error} */ (error).message;
      element.classList.add("bad");
    }
  }

  #show() {
    this.#tray.replaceChildren(...this.#images.map(({ element }) => element));
    this.#tray.hidden = this.#images.length === 0;
  }
}

/** @param {Blob} file */
export const isImage = (file) => file.type.startsWith("image/");

/**
 * A small view of an image.
 *
 * @param {Blob} file
 */
export function thumbnail(file) {
  const image = document.createElement("img");
  const url = URL.createObjectURL(file);
  const free = () => URL.revokeObjectURL(url);
  image.addEventListener("load", free, { once: true });
  image.addEventListener("error", free, { once: true });
  image.alt = "Image";
  image.src = url;
  return image;
}

/**
 * Has the model read the image alone. The tokens are those of the prompt without those around the image.
 *
 * @param {Engine} engine
 * @param {Blob} file
 * @returns {Promise<Cost>}
 * @throws whatever the engine throws
 */
async function costOf(engine, file) {
  const read = async (/** @type {string} */ prompt, /** @type {Blob[]} */ images) => {
    const body = { model: "default", prompt, images, max_tokens: 1 };
    return (await engine.completions.create(body)).usage?.prompt_tokens ?? 0;
  };
  const around = await read("Image:", []);
  const start = performance.now();
  const whole = await read("Image:<image>", [file]);
  return { tokens: whole - around, readMs: performance.now() - start };
}
