//! One of several models while it is started: counts its requests, and ends when they have ended.

import { type Deferred, deferred } from "../exchange/abort.js";
import type { WireRequest } from "../exchange/protocol.js";
import type { Member } from "./loads.js";
import type { SingleModel } from "./single.js";

/** The number of uses of all models until now. */
let uses = 0;

export class StartedModel implements Member {
  readonly engine: SingleModel;
  isLoaded = false;
  /** Settles when it is known what the loaded model can do, or when the load has failed. */
  described: Promise<unknown> = Promise.resolve();
  /** True if the last load has failed. */
  hasFailed = false;
  leases = 0;
  lastUse = 0;
  /** True if it takes no more requests. */
  isGone = false;
  /** True if its memory is free. */
  isFree = false;
  #idle: Deferred<void> | undefined;
  #unloaded: Promise<void> | undefined;
  readonly #onChange: () => void;

  /** `onChange` is called when no requests are in flight any more, when it takes no more, and when its memory is free. */
  constructor(engine: SingleModel, onChange: () => void) {
    this.engine = engine;
    this.#onChange = onChange;
  }

  get openExchanges(): number {
    return this.engine.openExchanges;
  }

  settle(): Promise<unknown> {
    return this.engine.info();
  }

  /** Until `release`, it is not unloaded. Questions about the model itself do not count as its use. */
  use(isRequest: boolean): void {
    this.leases += 1;
    if (isRequest) this.lastUse = ++uses;
  }

  release(): void {
    this.leases -= 1;
    if (this.leases > 0) return;
    this.#idle?.resolve();
    this.#onChange();
  }

  /** Answers a request for which `use` was called; calls `release` when the answer was read or cancelled. */
  async answer(request: WireRequest, signal: AbortSignal | undefined): Promise<Response> {
    let isReleased = false;
    const release = () => {
      if (!isReleased) this.release();
      isReleased = true;
    };
    let response: Response;
    try {
      response = await this.engine.answer(request, signal);
    } catch (error) {
      release();
      throw error;
    }
    if (response.body === null) {
      release();
      return response;
    }
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        async pull(controller) {
          try {
            const { done, value } = await reader.read();
            if (!done) {
              controller.enqueue(value);
              return;
            }
            controller.close();
          } catch (error) {
            controller.error(error);
          }
          release();
        },
        async cancel(reason) {
          release();
          await reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, response);
  }

  unload(): Promise<void> {
    this.isGone = true;
    this.#onChange();
    this.#unloaded ??= this.#unload();
    return this.#unloaded;
  }

  async #unload(): Promise<void> {
    if (this.leases > 0) {
      this.#idle = deferred();
      await this.#idle.promise;
    }
    await this.dispose();
  }

  /** Ends in-flight requests. */
  async dispose(): Promise<void> {
    this.isGone = true;
    await this.engine.dispose();
    this.isFree = true;
    this.#onChange();
  }
}
