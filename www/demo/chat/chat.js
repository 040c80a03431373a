//! The chat tab: sends messages, streams answers, edits and regenerates them. Conversations are kept by `library.js`.

import { byId, showText } from "../page/dom.js";
import { ImageTray } from "../page/images.js";
import { errorInWords, rateInWords } from "../page/words.js";
import { answer } from "./answer.js";
import { requestMessages } from "./conversation.js";
import { Library } from "./library.js";
import { MessageView, submitOnEnter } from "./message_view.js";
import { PartialSaves } from "./partial_saves.js";
import { withStops } from "./template.js";

/**
 * @import { Engine } from "../../dist/index.js"
 * @import { Measures } from "../page/speed_meter.js"
 * @import { Message } from "./conversation.js"
 */

/**
 * The parts of the model's view that the tab uses.
 *
 * @typedef {object} ChatModel
 * @property {Engine} engine
 * @property {boolean} hasTemplate
 * @property {boolean} takesImages
 * @property {boolean} isSimple whether it uses the simple template
 *
 * The answer at the end of the conversation that a new one replaces or continues. It stays until the new one has text.
 *
 * @typedef {object} Last
 * @property {Message} [replaced] the answer that is written again
 * @property {Message} [continued] the answer that goes on
 */

const NO_MODEL = "No model is loaded. Load one, or wait until it is ready.";
const NO_TEMPLATE = "This model has no chat template.";

/** From the end of the messages up to this distance, new text keeps the end in view. */
const NEAR_END_PX = 80;

export class Chat {
  /** @type {() => ChatModel | undefined} */
  #model;
  /** @type {() => Record<string, unknown>} */
  #fields;
  /** @type {(fields: Record<string, unknown>) => void} */
  #onRequest;
  /** @type {(measures: Measures) => void} */
  #onMeasured;
  /** @type {AbortController | undefined} */
  #running;
  #library = new Library(() => this.#open());
  #partialSaves = new PartialSaves((conversation) => this.#library.keep(conversation));
  /** The images of the message that is being written. */
  images = new ImageTray({
    prefix: "chat",
    what: "message",
    text: byId("chat-text", HTMLTextAreaElement),
    state: byId("chat-state", HTMLElement),
    engine: () => {
      const model = this.#model();
      return model?.takesImages ? model.engine : undefined;
    },
  });

  #thread = byId("thread", HTMLElement);
  #messages = byId("messages", HTMLElement);
  #system = byId("chat-system", HTMLTextAreaElement);
  #composer = byId("composer", HTMLFormElement);
  #text = byId("chat-text", HTMLTextAreaElement);
  #send = byId("chat-send", HTMLButtonElement);
  #stop = byId("chat-stop", HTMLButtonElement);
  #retry = byId("chat-retry", HTMLButtonElement);
  #state = byId("chat-state", HTMLElement);
  #error = byId("chat-error", HTMLElement);

  /**
   * @param {() => ChatModel | undefined} model the current one, if it is loaded
   * @param {() => Record<string, unknown>} fields of the request besides the messages
   * @param {(fields: Record<string, unknown>) => void} onRequest called with all fields of each request
   * @param {(measures: Measures) => void} onMeasured called at the end of an answer
   */
  constructor(model, fields, onRequest, onMeasured) {
    this.#model = model;
    this.#fields = fields;
    this.#onRequest = onRequest;
    this.#onMeasured = onMeasured;
    this.#composer.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#submit();
    });
    submitOnEnter(this.#text, this.#composer);
    this.#stop.addEventListener("click", () => this.stop());
    this.#retry.addEventListener("click", () => void this.#answer());
    byId("chat-panel", HTMLElement).addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.stop();
    });
    this.#system.addEventListener("change", () => {
      this.#library.current.system = this.#system.value;
      void this.#library.save();
    });
  }

  /** Shows the conversation of the last visit. */
  start() {
    return this.#library.start();
  }

  /** To be called when the model changes. */
  refresh() {
    const idle = this.#running === undefined;
    const model = this.#model();
    const canSend = idle && model?.hasTemplate === true;
    const said = this.#state.textContent;
    const isOver = (said === NO_MODEL && model) || (said === NO_TEMPLATE && model?.hasTemplate);
    if (isOver) this.#state.textContent = "";
    // Not `disabled`: that would take away the keyboard focus.
    this.#send.setAttribute("aria-disabled", String(!canSend));
    if (idle && document.activeElement === this.#stop) this.#text.focus();
    this.#stop.disabled = idle;
    this.images.refresh();
    const last = this.#library.current.messages.at(-1);
    this.#retry.hidden = !(idle && last?.role === "user");
    byId("chat-template", HTMLElement).hidden = model === undefined || model.hasTemplate;
  }

  stop() {
    this.#running?.abort();
  }

  /** Another conversation is on the page. */
  #open() {
    this.stop();
    this.#system.value = this.#library.current.system;
    this.#state.textContent = "";
    showText(this.#error, undefined);
    this.#draw();
    this.refresh();
    this.#thread.scrollTop = this.#thread.scrollHeight;
  }

  #draw() {
    const { messages } = this.#library.current;
    const views = messages.map((message, index) => {
      const isUser = message.role === "user";
      const isLast = index === messages.length - 1;
      return new MessageView(message, {
        ...(isUser && { onEdit: (text) => this.#edit(index, text) }),
        ...(!isUser && isLast && { onRegenerate: () => void this.#answer({ replaced: message }) }),
        // Reasoning alone cannot be continued.
        ...(isLast &&
          message.isIncomplete &&
          message.content !== "" && {
            onContinue: () => void this.#answer({ continued: message }),
          }),
      });
    });
    this.#messages.replaceChildren(...views.map(({ element }) => element));
    byId("chat-empty", HTMLElement).hidden = messages.length > 0;
    return views;
  }

  async #submit() {
    const content = this.#text.value;
    if (this.#running || content.trim() === "" || !this.#canAnswer()) return;
    this.#text.value = "";
    const images = this.images.take();
    const message = { role: /** @type {const} */ ("user"), content };
    this.#library.current.messages.push(images.length > 0 ? { ...message, images } : message);
    await this.#answer();
  }

  /**
   * Replaces a user's message; what follows it is removed.
   *
   * @param {number} index
   * @param {string} content
   * @returns {boolean} whether that is possible now
   */
  #edit(index, content) {
    if (this.#running || !this.#canAnswer()) return false;
    const { messages } = this.#library.current;
    const edited = { ...messages[index], role: /** @type {const} */ ("user"), content };
    messages.splice(index, messages.length, edited);
    void this.#answer();
    return true;
  }

  /** Says why not. */
  #canAnswer() {
    const model = this.#model();
    if (model?.hasTemplate) return true;
    this.#state.textContent = model ? NO_TEMPLATE : NO_MODEL;
    return false;
  }

  /**
   * Requests the answer to the messages so far, and shows and keeps it.
   *
   * @param {Last} [last]
   */
  async #answer({ replaced, continued } = {}) {
    const model = this.#model();
    if (this.#running || model === undefined || !this.#canAnswer()) return;
    const running = new AbortController();
    this.#running = running;
    const conversation = this.#library.current;
    const isOpen = () => this.#library.current === conversation;
    void this.#library.save();
    const { system, messages } = conversation;
    const sent = requestMessages({ system, messages: messages.filter((it) => it !== replaced) });
    /** @type {Message} */
    const message = { role: "assistant", content: "", isIncomplete: true };
    const shown = replaced ?? continued;
    if (shown === undefined) messages.push(message);
    const view = this.#draw().at(-1);
    view?.setWriting(true);
    this.#thread.scrollTop = this.#thread.scrollHeight;
    // The button that was pressed may be gone with its message.
    if (!byId("chat-panel", HTMLElement).contains(document.activeElement)) this.#thread.focus();
    this.#state.textContent = "Reading the messages…";
    showText(this.#error, undefined);
    this.refresh();
    /** @type {string} */
    let state;
    /** @type {string | undefined} */
    let failure;
    try {
      const fields = withStops(model.isSimple, this.#fields());
      if (continued) Object.assign(fields, { continue_final_message: true });
      this.#onRequest({ ...fields, messages: sent });
      // A continued prompt has no white space at its end.
      const begin = continued?.content.trimEnd() ?? "";
      let begun = false;
      const end = await answer(model.engine, fields, sent, running.signal, (text) => {
        // Screen readers announce every assignment.
        if (!begun && isOpen()) this.#state.textContent = "Writing…";
        if (!begun && shown) messages.splice(messages.indexOf(shown), 1, message);
        begun = true;
        message.content = begin + text.content;
        const reasoning = (continued?.reasoning ?? "") + text.reasoning;
        if (reasoning !== "") message.reasoning = reasoning;
        this.#partialSaves.changed(conversation);
        this.#follow(() => view?.update(message));
      });
      this.#onMeasured(end);
      const { usage, decodeRate } = end;
      const speed = decodeRate === undefined ? "" : `, ${rateInWords(decodeRate)}`;
      const tokens = usage
        ? ` ${usage.prompt_tokens} + ${usage.completion_tokens} tokens${speed}.`
        : "";
      state =
        end.finishReason === "length" ? "Done: reached the maximum number of tokens." : "Done.";
      state += tokens;
      delete message.isIncomplete;
      delete continued?.isIncomplete;
    } catch (error) {
      const stopped = running.signal.aborted;
      state = stopped ? "Stopped." : "Failed.";
      if (stopped) delete message.isIncomplete;
      else failure = errorInWords(error);
    }
    this.#running = undefined;
    this.#partialSaves.end();
    const isEmpty = message.content === "" && message.reasoning === undefined;
    if (isEmpty) {
      if (shown === undefined) messages.splice(messages.indexOf(message), 1);
      if (state.startsWith("Done")) state = "The model wrote nothing.";
    }
    await this.#finish(conversation, state, failure);
  }

  /**
   * @param {import("./conversation.js").Conversation} conversation
   * @param {string} state
   * @param {string | undefined} failure
   */
  async #finish(conversation, state, failure) {
    if (this.#library.current === conversation) {
      this.#follow(() => this.#draw());
      this.#state.textContent = state;
      showText(this.#error, failure);
    }
    this.refresh();
    await this.#library.save(conversation);
  }

  /**
   * Changes the messages, and keeps their end in view if it was.
   *
   * @param {() => void} change
   */
  #follow(change) {
    const { scrollHeight, scrollTop, clientHeight } = this.#thread;
    const isNearEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    change();
    if (!isNearEnd) return;
    // The messages are drawn at the next frame.
    requestAnimationFrame(() => {
      this.#thread.scrollTop = this.#thread.scrollHeight;
    });
  }
}
