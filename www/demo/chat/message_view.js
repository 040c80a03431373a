//! One message on the page: its text, what the model thought, and its buttons. What the buttons do is `chat.js`'s concern.

import { copyOnClick } from "../page/dom.js";
import { markdown } from "./markdown.js";
import { thumbnail } from "../page/images.js";

/** @import { Message } from "./conversation.js" */

/**
 * @typedef {object} Actions
 * @property {(text: string) => boolean} [onEdit] called with the new text of a user's message; false if it cannot be sent now
 * @property {() => void} [onRegenerate] of the last answer
 * @property {() => void} [onContinue] of the last answer, if it is incomplete
 */

/** While a message is written, at most a fourth of the time is spent on drawing it. */
const PAUSE = 3;

/** A message as a list item. */
export class MessageView {
  /** The item. */
  element = document.createElement("li");

  /** @type {Message} */
  #message;
  #body = document.createElement("div");
  #images = document.createElement("div");
  #reasoning = document.createElement("details");
  #thoughts = document.createElement("div");
  #summary = document.createElement("summary");
  #incomplete = document.createElement("p");
  #tools = document.createElement("div");
  #isShown = true;
  /** The time that the last drawing of the text took. */
  #drawMs = 0;

  /**
   * @param {Message} message
   * @param {Actions} actions
   */
  constructor(message, { onEdit, onRegenerate, onContinue }) {
    this.#message = message;
    const isUser = message.role === "user";
    this.element.className = `message ${message.role}`;
    const who = document.createElement("h3");
    who.textContent = isUser ? "You" : "Model";
    this.#reasoning.className = "reasoning";
    this.#reasoning.append(this.#summary, this.#thoughts);
    this.#body.className = "text";
    this.#tools.className = "tools";
    const copy = button("Copy");
    copyOnClick(copy, () => this.#message.content);
    this.#tools.append(copy);
    if (onEdit) this.#addButton("Edit", () => this.#edit(onEdit));
    if (onContinue) this.#addButton("Continue", onContinue);
    if (onRegenerate) this.#addButton("Regenerate", onRegenerate);
    this.#images.className = "images";
    this.#images.append(...(message.images ?? []).map(thumbnail));
    this.#incomplete.className = "hint";
    this.#incomplete.textContent = "This answer is incomplete.";
    this.element.append(who, this.#images, this.#reasoning, this.#body);
    if (!isUser) this.element.append(this.#incomplete);
    this.element.append(this.#tools);
    this.#draw();
  }

  /**
   * Shows more text of the message soon: at the next frame, unless drawing it takes long. `setWriting(false)` or a new
   * view must follow.
   *
   * @param {Message} message
   */
  update(message) {
    this.#message = message;
    if (!this.#isShown) return;
    this.#isShown = false;
    setTimeout(() => requestAnimationFrame(() => this.#draw()), this.#drawMs * PAUSE);
  }

  /** Marks the message as being written, or not. @param {boolean} isWriting */
  setWriting(isWriting) {
    this.element.classList.toggle("writing", isWriting);
    this.#tools.hidden = isWriting;
    this.#draw();
  }

  #draw() {
    const start = performance.now();
    this.#isShown = true;
    const { role, content, reasoning, isIncomplete } = this.#message;
    const isWriting = this.element.classList.contains("writing");
    if (role === "user") this.#body.textContent = content;
    else this.#body.replaceChildren(markdown(content));
    this.#reasoning.hidden = !reasoning;
    this.#thoughts.textContent = reasoning ?? "";
    this.#incomplete.hidden = !isIncomplete || isWriting;
    const thinks = isWriting && content === "";
    const words = thinks ? "Thinking…" : "Reasoning";
    if (this.#summary.textContent !== words) this.#summary.textContent = words;
    this.#drawMs = performance.now() - start;
  }

  /**
   * @param {string} label
   * @param {() => void} onClick
   */
  #addButton(label, onClick) {
    const made = button(label);
    made.addEventListener("click", onClick);
    this.#tools.append(made);
  }

  /**
   * Replaces the text by a form.
   *
   * @param {(text: string) => boolean} onEdit
   */
  #edit(onEdit) {
    const form = document.createElement("form");
    const text = document.createElement("textarea");
    const send = button("Send again");
    const cancel = button("Cancel");
    text.value = this.#message.content;
    text.rows = Math.min(10, text.value.split("\n").length + 1);
    text.ariaLabel = "Your message";
    send.type = "submit";
    send.className = "small";
    form.className = "edit";
    form.append(text, send, cancel);
    const close = () => {
      form.remove();
      this.#body.hidden = false;
      this.#tools.hidden = false;
      const edit = this.#tools.querySelectorAll("button")[1];
      edit?.focus();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (text.value.trim() === "") return;
      if (!onEdit(text.value)) text.focus();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    });
    submitOnEnter(text, form);
    cancel.addEventListener("click", close);
    this.#body.hidden = true;
    this.#tools.hidden = true;
    this.#body.after(form);
    text.focus();
  }
}

/**
 * Enter submits the form, Shift and Enter begins a line. An input method uses Enter to choose characters.
 *
 * @param {HTMLTextAreaElement} text
 * @param {HTMLFormElement} form
 */
export function submitOnEnter(text, form) {
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
}

/** @param {string} label */
function button(label) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "quiet small";
  made.textContent = label;
  return made;
}
