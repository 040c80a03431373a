//! Keeps the secrets of a URL (signatures, passwords) out of messages: these reach logs, and everyone who may send a
//! request to the endpoint.

import type { ModelSource } from "./source.js";

/** Replaces `url` by `shown` in text and in the messages of failures. */
export class Redaction {
  #url: string;
  #shown: string;

  constructor(url: string, shown: string) {
    this.#url = url;
    this.#shown = shown;
  }

  text(message: string): string {
    return message.replaceAll(this.#url, this.#shown);
  }

  /** Settles as `promise` does, with a redacted failure. */
  async failure<T>(promise: Promise<T>): Promise<T> {
    try {
      return await promise;
    } catch (error) {
      // The error keeps its class, which says what may be done about it. Messages of DOMExceptions are the browser's.
      if (error instanceof Error && !(error instanceof DOMException)) {
        error.message = this.text(error.message);
      }
      throw error;
    }
  }

  source(source: ModelSource): ModelSource {
    return {
      size: source.size,
      read: (offset, length) => this.failure(source.read(offset, length)),
    };
  }
}
