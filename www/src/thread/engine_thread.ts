//! The thread of an engine worker in a page: a plain worker, or one in an isolated frame where that gives it threads.

import { deferred } from "../exchange/abort.js";
import type { EngineIsolation } from "../exchange/engine_info.js";
import { messageOf } from "../exchange/error_response.js";
import type { StartOptions, WorkerToPage } from "../exchange/protocol.js";
import type { EngineThread } from "../platform.js";
import { IsolatedFrame } from "./isolated_frame.js";
import type { IsolatedFrameOptions } from "../site/interception.js";
import { findFrame } from "./isolation.js";
import { startWorkerScript } from "./worker_script.js";

/**
 * Starts as a plain worker, whose first message names its script: only a bundler knows that URL. If a frame with the same
 * script can be had, it takes over before the page's first message; otherwise nothing is lost.
 */
export class PageThread implements EngineThread {
  onmessage: EngineThread["onmessage"] = null;
  onerror: EngineThread["onerror"] = null;
  #thread: EngineThread;
  #frame: IsolatedFrame | undefined;
  #isEnded = false;
  #isolation: EngineIsolation = { isolation: "page" };

  constructor(
    scriptUrl: string | URL | undefined,
    options: StartOptions,
    frame: IsolatedFrameOptions | false | undefined,
  ) {
    const plain = startWorkerScript(scriptUrl);
    this.#thread = plain;
    if (globalThis.crossOriginIsolated) this.#listenTo(plain);
    else void this.#choose(plain, options, frame);
  }

  get isolation(): EngineIsolation {
    return this.#isolation;
  }

  postMessage(message: unknown, options?: Transferable[] | StructuredSerializeOptions): void {
    // The declarations of `postMessage` take a list or an object, not either.
    this.#thread.postMessage(message, options as Transferable[]);
  }

  terminate(): void {
    this.#isEnded = true;
    this.#thread.terminate();
    this.#frame?.terminate();
  }

  /** Decides between `plain` and a frame, and passes on the first message afterwards. */
  async #choose(
    plain: Worker,
    options: StartOptions,
    frame: IsolatedFrameOptions | false | undefined,
  ): Promise<void> {
    const here = deferred<MessageEvent<WorkerToPage>>();
    plain.onmessage = (event) => here.resolve(event);
    plain.onerror = (event) => {
      this.terminate();
      this.onerror?.call(plain, event);
    };
    try {
      const url = await findFrame(options, frame);
      if (this.#isEnded) return;
      this.#frame = new IsolatedFrame(url);
      await this.#frame.isolated;
      await this.#frame.start(scriptOf((await here.promise).data));
      plain.terminate();
      this.#thread = this.#frame;
      this.#isolation = { isolation: "frame" };
    } catch (error) {
      this.#frame?.terminate();
      this.#frame = undefined;
      this.#isolation = { isolation: "none", isolationReason: messageOf(error) };
    }
    const first = await here.promise;
    if (this.#isEnded) return;
    this.#listenTo(this.#thread);
    this.onmessage?.call(plain, first);
  }

  #listenTo(thread: EngineThread): void {
    const self = this as unknown as Worker;
    thread.onmessage = (event) => this.onmessage?.call(self, event);
    thread.onerror = (event) => this.onerror?.call(self, event);
  }
}

/** @throws Error if a worker of another document cannot have the script */
function scriptOf(message: WorkerToPage): string {
  const script = message.type === "here" ? message.script : undefined;
  if (!script?.startsWith("http")) {
    throw new Error("the engine worker's script is no file of this site");
  }
  return script;
}
