//! The pictures of the message that is being written: picked, pasted, dropped or taken with the camera, and shown with their tokens.

import { byId } from "../dom.js";

/** @import { Engine } from "../../dist/index.js" */

/** More make a message that no small model understands. */
const MAX_PICTURES = 8;

/**
 * What a picture costs the model.
 *
 * @typedef {{ tokens: number, readMs: number }} Cost
 */

export class PictureTray {
  /** @type {{ file: Blob, element: HTMLElement }[]} */
  #pictures = [];
  /** @type {() => Engine | undefined} */
  #engine;
  #tray = byId("chat-pictures", HTMLElement);
  #tools = byId("chat-picture-tools", HTMLElement);
  #state = byId("chat-state", HTMLElement);

  /** @param {() => Engine | undefined} engine of the current model, if that takes pictures */
  constructor(engine) {
    this.#engine = engine;
    for (const id of ["chat-picture", "chat-camera"]) {
      const input = byId(`${id}-file`, HTMLInputElement);
      byId(id, HTMLButtonElement).addEventListener("click", () => input.click());
      input.addEventListener("change", () => {
        this.add([...(input.files ?? [])]);
        input.value = "";
      });
    }
    byId("chat-text", HTMLTextAreaElement).addEventListener("paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])].filter(isPicture);
      if (files.length === 0) return;
      event.preventDefault();
      this.add(files);
    });
  }

  /** To be called when the model changes. */
  refresh() {
    this.#tools.hidden = this.#engine() === undefined;
  }

  /** @param {Blob[]} files */
  add(files) {
    if (this.#engine() === undefined) {
      this.#state.textContent = "This model takes no pictures. Load one with its projector.";
      return;
    }
    const room = MAX_PICTURES - this.#pictures.length;
    if (files.length > room)
      this.#state.textContent = `A message has at most ${MAX_PICTURES} pictures.`;
    for (const file of files.slice(0, room)) void this.#add(file);
  }

  /** The pictures; none are left. */
  take() {
    const files = this.#pictures.map(({ file }) => file);
    this.#pictures = [];
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
    const picture = { file, element };
    remove.addEventListener("click", () => {
      this.#pictures = this.#pictures.filter((it) => it !== picture);
      this.#show();
      byId("chat-text", HTMLTextAreaElement).focus();
    });
    note.textContent = "Reading…";
    element.append(thumbnail(file), note, remove);
    this.#pictures.push(picture);
    this.#show();
    const engine = this.#engine();
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
    this.#tray.replaceChildren(...this.#pictures.map(({ element }) => element));
    this.#tray.hidden = this.#pictures.length === 0;
  }
}

/** @param {Blob} file */
export const isPicture = (file) => file.type.startsWith("image/");

/**
 * A small view of a picture.
 *
 * @param {Blob} file
 */
export function thumbnail(file) {
  const image = document.createElement("img");
  const url = URL.createObjectURL(file);
  const free = () => URL.revokeObjectURL(url);
  image.addEventListener("load", free, { once: true });
  image.addEventListener("error", free, { once: true });
  image.alt = "Picture";
  image.src = url;
  return image;
}

/**
 * Has the model read the picture alone. The tokens are those of the prompt without those around the picture.
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
  const around = await read("Picture:", []);
  const start = performance.now();
  const whole = await read("Picture:<image>", [file]);
  return { tokens: whole - around, readMs: performance.now() - start };
}
