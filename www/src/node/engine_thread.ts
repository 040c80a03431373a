//! The engine's thread, or one of the CPU device, as its owner sees it: a `worker_threads` worker with the interface of a
//! page's worker.

import { Worker } from "node:worker_threads";
import { codeOf, messageOf } from "../exchange/error_response.js";
import type { EngineThread as Thread } from "../platform.js";
import { type DecodeReply, type DecodeRequest, isDecodeRequest } from "./decode_by_owner.js";
import { decodeImage } from "./decode_image.js";

/** A message to the thread. A port is part of it, because not every program passes transferred ports on by themselves. */
export interface ThreadMessage {
  message: unknown;
  ports: readonly unknown[];
}

/** The data that a thread has before its first message. */
export interface ThreadData {
  /** The purpose of the thread. */
  name: string;
}

export class EngineThread implements Thread {
  onmessage: Thread["onmessage"] = null;
  onerror: Thread["onerror"] = null;
  #worker: Worker;
  #isEnded = false;

  /** `name`: what it is for. */
  constructor(name = "inpage") {
    // The program's own options for Node, such as loaders, are not for this script.
    this.#worker = new Worker(new URL("./thread_script.js", import.meta.url), {
      name,
      workerData: { name } satisfies ThreadData,
      execArgv: [],
    });
    this.#worker.on("message", (data) => {
      if (isDecodeRequest(data)) void this.#decode(data);
      else this.#emit("onmessage", new MessageEvent("message", { data }));
    });
    this.#worker.on("error", (error) =>
      this.#fail(error instanceof Error ? error.message : `${error}`),
    );
    this.#worker.on("exit", (code) => this.#fail(`its thread ended with status ${code}`));
  }

  postMessage(message: unknown, transfer?: unknown): void {
    const ports = Array.isArray(transfer) ? transfer : [];
    this.#worker.postMessage({ message, ports } satisfies ThreadMessage, ports);
  }

  terminate(): void {
    this.#isEnded = true;
    void this.#worker.terminate();
  }

  async #decode({ decode, file }: DecodeRequest): Promise<void> {
    let reply: DecodeReply;
    try {
      reply = { decoded: decode, image: await decodeImage(file) };
    } catch (error) {
      const failure = { code: codeOf(error, "invalid_value"), message: messageOf(error) };
      reply = { decoded: decode, failure };
    }
    if (!this.#isEnded) this.#worker.postMessage(reply);
  }

  #fail(message: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#emit("onerror", Object.assign(new Event("error", { cancelable: true }), { message }));
  }

  #emit(handler: "onmessage" | "onerror", event: Event): void {
    const call = this[handler] as ((event: Event) => void) | null;
    call?.call(this, event);
  }
}
