//! Keeps an answer while it is written, so that it is not lost with its tab. How a conversation is kept is `library.js`'s concern.

/** @import { Conversation } from "./conversation.js" */

/** The most that is lost with a tab that ends without notice, such as one that crashes. */
const PAUSE_MS = 500;

/** Saves of the conversation whose answer is being written. */
export class PartialSaves {
  /** @type {(conversation: Conversation) => Promise<void>} */
  #keep;
  /** @type {Conversation | undefined} */
  #changed;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {(conversation: Conversation) => Promise<void>} keep writes a conversation as it is now */
  constructor(keep) {
    this.#keep = keep;
    addEventListener("pagehide", () => this.#save());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#save();
    });
  }

  /** To be called after each piece of text. @param {Conversation} conversation */
  changed(conversation) {
    this.#changed = conversation;
    this.#timer ??= setTimeout(() => this.#save(), PAUSE_MS);
  }

  /** To be called when the answer has ended: the caller saves it. */
  end() {
    this.#changed = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #save() {
    const conversation = this.#changed;
    this.end();
    if (conversation !== undefined) void this.#keep(conversation);
  }
}
