//! Keeps the secrets of a URL (signatures, tokens, passwords) out of messages: these reach logs, and everyone who may send a
//! request to the endpoint.

import { shownUrl } from "../store/cache_key.js";
import type { ModelSource } from "../../byte_source.js";

/** Leaves user name, password, query and fragment of `url` out of text and failures. */
export class Redaction {
  #url: string;
  #shown: string;

  constructor(url: string) {
    this.#url = url;
    this.#shown = shownUrl(url);
  }

  text(message: string): string {
    return message.replaceAll(this.#url, this.#shown);
  }

  /** Settles as `promise` does, with a redacted failure. */
  async failure<T>(promise: Promise<T>): Promise<T> {
    try {
      return await promise;
    } catch (error) {
      this.#redact(error);
      throw error;
    }
  }

  source(source: ModelSource): ModelSource {
    return {
      size: source.size,
      read: (offset, length) => this.failure(source.read(offset, length)),
    };
  }

  /** The error keeps its class, which says what may be done about it. Messages of DOMExceptions are the browser's. */
  #redact(error: unknown): void {
    if (!(error instanceof Error) || error instanceof DOMException) return;
    error.message = this.text(error.message);
    // Some engines repeat the message in the stack, which consoles print.
    if (error.stack !== undefined) error.stack = this.text(error.stack);
    this.#redact(error.cause);
  }
}
