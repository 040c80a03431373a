//! One attempt to get an answer: a request over one port to one engine, its head, and its body piece by piece.
//! `requester.ts` handles the loss of the engine.

import { onceAborted, orAborted } from "./abort.js";
import { ChunkReceiver, pieceOf } from "./body_stream.js";
import { EngineFailure } from "./error_response.js";
import type {
  BodyItem,
  BodyPiece,
  BodyTransport,
  RequesterMessage,
  ResponderMessage,
  Resume,
  WireFailure,
  WireRequest,
} from "./protocol.js";

const HEARTBEAT_MS = 2000;

/** A port to an engine for one exchange. */
export interface Connection {
  port: MessagePort;
  /** Aborts when the other end is gone; the reason is an [`EngineFailure`] or another error. */
  lost: AbortSignal;
  /** Called for every message of the other end. */
  onSign?: (() => void) | undefined;
  /** Called once, when nothing more will arrive on the port. */
  onEnd?: (() => void) | undefined;
}

/** The request of an attempt. */
export interface AttemptOptions {
  request: WireRequest;
  transport: BodyTransport;
  heartbeat: boolean;
  resume: Resume;
  signal: AbortSignal | undefined;
}

export type Head = Extract<ResponderMessage, { type: "head" }>;

/** The engine was lost; the answer may be continued by another one unless that is final. */
export class Lost extends Error {
  constructor(
    readonly reason: unknown,
    readonly isFinal = false,
  ) {
    super("the engine was lost");
  }
}

export class Attempt {
  #connection: Connection;
  #signal: AbortSignal | undefined;
  #head: Promise<Head>;
  #reader: ReadableStreamDefaultReader<BodyItem> | undefined;
  #beat: ReturnType<typeof setInterval> | undefined;
  #ended = false;
  #unwatch: (() => void) | undefined;
  #cancel = () => this.#post({ type: "cancel" });

  /** Sends the request. */
  constructor(
    connection: Connection,
    { request, transport, heartbeat, resume, signal }: AttemptOptions,
  ) {
    this.#connection = connection;
    this.#signal = signal;
    if (heartbeat) this.#beat = setInterval(() => this.#post({ type: "alive" }), HEARTBEAT_MS);
    this.#unwatch = signal && onceAborted(signal, this.#cancel);
    let receiver: ChunkReceiver | undefined;
    this.#head = new Promise<Head>((resolve, reject) => {
      connection.port.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
        connection.onSign?.();
        if (data.type === "head") {
          if (!data.stream) {
            receiver = new ChunkReceiver(
              (message) => this.#post(message),
              () => {},
            );
          }
          this.#reader = (data.stream ?? receiver?.stream)?.getReader();
          resolve(data);
        } else if (data.type === "lost" && receiver === undefined) {
          reject(new Lost(failureOf(data.failure)));
        } else {
          receiver?.accept(data);
        }
      };
    });
    // It may settle after the attempt was given up.
    this.#head.catch(() => {});
    this.#post({ type: "request", request, transport, heartbeat, resume });
    if (signal?.aborted) this.#cancel();
  }

  /**
   * Resolves when the head has arrived.
   *
   * @throws Lost if the engine is lost first
   * @throws the reason of the signal if that aborts first
   */
  async head(): Promise<Head> {
    try {
      return await this.#orLost(this.#head);
    } catch (reason) {
      this.end();
      throw reason;
    }
  }

  /**
   * The next piece of the body; `undefined` at its end.
   *
   * @throws as `head`, and what the body fails with
   */
  async read(): Promise<BodyPiece | undefined> {
    const reader = this.#reader as ReadableStreamDefaultReader<BodyItem>;
    try {
      const { done, value } = await this.#orLost(reader.read());
      if (done) {
        this.end();
        return undefined;
      }
      if ("lost" in value) throw new Lost(failureOf(value.lost));
      return pieceOf(value);
    } catch (reason) {
      await this.cancel(reason);
      throw reason;
    }
  }

  /** Gives the rest of the answer up. */
  async cancel(reason?: unknown): Promise<void> {
    // Cancel first: ending closes the port that carries the cancellation.
    const cancelled = this.#reader?.cancel(reason).catch(() => {});
    this.end();
    // A stream whose other end is gone may never confirm it.
    if (!this.#connection.lost.aborted) await cancelled;
  }

  /** Ends the attempt; a request whose head has not arrived is cancelled. */
  end(): void {
    if (this.#ended) return;
    if (this.#reader === undefined) this.#cancel();
    this.#ended = true;
    clearInterval(this.#beat);
    this.#unwatch?.();
    this.#connection.port.onmessage = null;
    // Messages posted before still arrive.
    this.#connection.port.close();
    this.#connection.onEnd?.();
  }

  async #orLost<T>(promise: Promise<T>): Promise<T> {
    const { lost } = this.#connection;
    try {
      return await orAborted(orAborted(promise, lost), this.#signal);
    } catch (reason) {
      if (this.#signal?.aborted) throw this.#signal.reason;
      if (lost.aborted && !(reason instanceof Lost)) throw new Lost(lost.reason);
      throw reason;
    }
  }

  #post(message: RequesterMessage): void {
    if (!this.#ended) this.#connection.port.postMessage(message);
  }
}

function failureOf({ code, message }: WireFailure): EngineFailure {
  return new EngineFailure(code, message);
}
