//! Response bodies across a MessagePort: a transferred stream where the browser supports it, else chunks with
//! flow control by credit (Safari cannot transfer streams).

import type {
  BodyItem,
  BodyPiece,
  BodyTransport,
  RequesterMessage,
  ResponderMessage,
} from "./protocol.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** Chunks that the sender may be ahead of the reader. */
const CREDIT_CHUNKS = 16;

let transport: BodyTransport | undefined;

/** The best transport that this browser supports; found out once, by trying. */
export function bestTransport(): BodyTransport {
  if (transport === undefined) {
    const { port1, port2 } = new MessageChannel();
    try {
      const stream = new ReadableStream();
      port1.postMessage(stream, [stream as unknown as Transferable]);
      transport = "transfer";
    } catch {
      transport = "chunks";
    }
    port1.close();
    port2.close();
  }
  return transport;
}

/**
 * Sends a body in chunks, never more than the receiver has granted. Every `credit` message of the port must
 * be passed to `grant`.
 */
export class ChunkSender {
  #credit = 0;
  #wake: (() => void) | undefined;
  #stopped = false;

  grant(chunks: number): void {
    this.#credit += chunks;
    this.#wake?.();
  }

  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  /** Resolves when the body has ended or was stopped. */
  async send(
    body: ReadableStream<BodyItem>,
    post: (message: ResponderMessage) => void,
  ): Promise<void> {
    const reader = body.getReader();
    try {
      for (;;) {
        while (this.#credit === 0 && !this.#stopped) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        if (this.#stopped) return;
        const { done, value } = await reader.read();
        if (this.#stopped) return;
        if (done) {
          post({ type: "end" });
          return;
        }
        this.#credit -= 1;
        if ("lost" in value) post({ type: "lost", failure: value.lost });
        else post({ type: "chunk", ...pieceOf(value) });
      }
    } catch (error) {
      post({ type: "error", message: error instanceof Error ? error.message : String(error) });
    } finally {
      // No effect once the body has ended; before that it ends the generation.
      await reader.cancel().catch(() => {});
    }
  }
}

/** The receiving end of a [`ChunkSender`]: pass it the port's messages, read its `stream`. */
export class ChunkReceiver {
  readonly stream: ReadableStream<BodyItem>;
  #controller!: ReadableStreamDefaultController<BodyItem>;
  #post: (message: RequesterMessage) => void;
  #onEnd: () => void;
  #granted = 0;
  #ended = false;

  constructor(post: (message: RequesterMessage) => void, onEnd: () => void) {
    this.#post = post;
    this.#onEnd = onEnd;
    this.stream = new ReadableStream<BodyItem>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#grant(),
        cancel: () => {
          post({ type: "cancel" });
          this.#end();
        },
      },
      { highWaterMark: CREDIT_CHUNKS },
    );
  }

  /** Messages that are not part of a body are ignored. */
  accept(message: ResponderMessage): void {
    if (this.#ended) return;
    if (message.type === "chunk") {
      this.#granted -= 1;
      this.#controller.enqueue({ bytes: message.bytes, position: message.position });
    } else if (message.type === "lost") {
      this.#end();
      this.#controller.enqueue({ lost: message.failure });
      this.#controller.close();
    } else if (message.type === "end") {
      this.#end();
      this.#controller.close();
    } else if (message.type === "error") {
      this.#end();
      this.#controller.error(new TypeError(message.message));
    }
  }

  #grant(): void {
    const chunks = (this.#controller.desiredSize ?? 0) - this.#granted;
    if (this.#ended || chunks <= 0) return;
    this.#granted += chunks;
    this.#post({ type: "credit", chunks });
  }

  #end(): void {
    this.#ended = true;
    this.#onEnd();
  }
}

/** An item of a body as a piece. */
export function pieceOf(item: Bytes | BodyPiece): BodyPiece {
  return item instanceof Uint8Array ? { bytes: item } : item;
}

/** True if `bytes` end where an event ends, which is an empty line. */
export function endsEvent(bytes: Uint8Array): boolean {
  return bytes.at(-1) === 10 && bytes.at(-2) === 10;
}
