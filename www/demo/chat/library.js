//! The conversations that the browser keeps: the current one, the list, and the buttons for it: new, rename, delete, export.

import { byId, showText } from "../page/dom.js";
import { recall, remember } from "../page/memory.js";
import { errorInWords } from "../page/words.js";
import { asJson, asMarkdown, newConversation, titleOf } from "./conversation.js";
import { openStore, temporaryStore } from "./store.js";

/**
 * @import { Conversation } from "./conversation.js"
 * @import { Store } from "./store.js"
 */

const KEY = "conversation";

/** The user's conversations. */
export class Library {
  /** The conversation on the page. */
  current = newConversation();

  /** @type {Store} */
  #store = temporaryStore();
  /** @type {() => void} */
  #onOpen;
  /** Writes follow each other, so that an older state never replaces a newer one. */
  #writing = Promise.resolve();
  /** Conversations that were deleted, whose last answer may still end. @type {Set<string>} */
  #deleted = new Set();

  #title = byId("chat-title", HTMLElement);
  #list = byId("chat-list", HTMLElement);
  #count = byId("chat-count", HTMLElement);
  #problem = byId("chat-storage", HTMLElement);
  #rename = byId("chat-rename-form", HTMLFormElement);
  #name = byId("chat-name", HTMLInputElement);

  /** @param {() => void} onOpen called when another conversation is on the page */
  constructor(onOpen) {
    this.#onOpen = onOpen;
    const onClick = (/** @type {string} */ id, /** @type {() => unknown} */ run) =>
      byId(id, HTMLButtonElement).addEventListener("click", () => void run());
    onClick("chat-new", () => this.open(newConversation()));
    onClick("chat-rename", () => this.#startRenaming());
    onClick("chat-rename-cancel", () => this.#endRenaming());
    onClick("chat-delete", () => this.#delete());
    onClick("chat-json", () => this.#download(asJson, "json", "application/json"));
    onClick("chat-markdown", () => this.#download(asMarkdown, "md", "text/markdown"));
    this.#rename.addEventListener("submit", (event) => {
      event.preventDefault();
      this.current.title = this.#name.value.trim();
      this.#endRenaming();
      void this.save();
    });
    this.#name.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#endRenaming();
    });
  }

  /** Reads what is kept and opens the conversation of the last visit. */
  async start() {
    try {
      this.#store = await openStore();
    } catch (error) {
      this.#report(
        "Conversations are lost when this page is closed, because it has no storage",
        error,
      );
    }
    const all = await this.#all();
    const last = all.find(({ id }) => id === recall(KEY));
    if (last !== undefined) this.current = last;
    this.open(this.current);
  }

  /** @param {Conversation} conversation */
  open(conversation) {
    this.current = conversation;
    remember(KEY, conversation.id);
    this.#endRenaming();
    this.#onOpen();
    void this.#show();
  }

  /** Keeps a conversation as it is now: the current one, or another one whose answer has just ended. */
  async save(conversation = this.current) {
    await this.keep(conversation);
    await this.#show();
  }

  /** Keeps a conversation as it is now, and leaves the list as it is. @param {Conversation} conversation */
  async keep(conversation) {
    conversation.updatedMs = Date.now();
    // A copy: the conversation goes on while this waits.
    const kept = structuredClone(conversation);
    const write = async () => {
      if (this.#deleted.has(kept.id)) return;
      try {
        await this.#store.put(kept);
        showText(this.#problem, undefined);
      } catch (error) {
        const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
        const remedy = isFull
          ? "The storage of this site is full: delete conversations or stored models. This conversation is not saved"
          : "This conversation is not saved; you can export it";
        this.#report(remedy, error);
      }
    };
    this.#writing = this.#writing.then(write);
    await this.#writing;
  }

  async #delete() {
    if (!confirm(`Delete “${titleOf(this.current)}”?`)) return;
    const { id } = this.current;
    try {
      this.#deleted.add(id);
      await this.#writing;
      await this.#store.remove(id);
    } catch (error) {
      this.#deleted.delete(id);
      this.#report("The conversation could not be deleted", error);
      return;
    }
    const [next] = await this.#all();
    this.open(next ?? newConversation());
  }

  /** @returns {Promise<Conversation[]>} */
  async #all() {
    try {
      return await this.#store.list();
    } catch (error) {
      this.#report("The conversations could not be read", error);
      return [];
    }
  }

  async #show() {
    this.#title.textContent = titleOf(this.current);
    const all = await this.#all();
    this.#count.textContent = `Conversations (${all.length})`;
    this.#list.replaceChildren(
      ...all.map((conversation) => {
        const item = document.createElement("li");
        const open = document.createElement("button");
        open.type = "button";
        open.className = "quiet small";
        open.textContent = titleOf(conversation);
        if (conversation.id === this.current.id) open.setAttribute("aria-current", "true");
        open.addEventListener("click", () => {
          if (conversation.id !== this.current.id) this.open(conversation);
        });
        item.append(open);
        return item;
      }),
    );
  }

  #startRenaming() {
    this.#rename.hidden = false;
    this.#name.value = titleOf(this.current);
    this.#name.focus();
    this.#name.select();
  }

  #endRenaming() {
    if (this.#rename.hidden) return;
    this.#rename.hidden = true;
    byId("chat-rename", HTMLButtonElement).focus();
  }

  /**
   * @param {(conversation: Conversation) => string} write
   * @param {string} ending of the file's name
   * @param {string} type
   */
  #download(write, ending, type) {
    const link = document.createElement("a");
    const url = URL.createObjectURL(new Blob([write(this.current)], { type }));
    const name = titleOf(this.current)
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-+|-+$/g, "");
    link.href = url;
    link.download = `${name.slice(0, 60) || "conversation"}.${ending}`;
    link.click();
    // The download has read the address by then.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  /**
   * @param {string} what
   * @param {unknown} error
   */
  #report(what, error) {
    showText(this.#problem, `${what}: ${errorInWords(error)}`);
  }
}
