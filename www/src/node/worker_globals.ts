//! The globals that the engine worker's script expects and a thread lacks: `self` with its events, `navigator`, and a
//! `fetch` that reads the package's own files. They exist in the engine's thread only, never in the user's program.

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { MessagePort as ThreadPort } from "node:worker_threads";
import { messageOf } from "../exchange/error_response.js";
import type { WorkerToPage } from "../exchange/protocol.js";
import type { WorkerScope } from "../worker_scopes.js";
import { type DecodeReply, isDecodeReply, takeReply } from "./decode_by_owner.js";
import type { ThreadMessage } from "./engine_thread.js";

/** Makes this thread look like a page's worker to the scripts that are imported from now on. */
export function supplyWorkerGlobals(port: ThreadPort, name: string): void {
  const scope = new ThreadScope(port);
  define("name", name);
  // Not the scope itself: libraries look for other globals in `self`.
  define("self", globalThis);
  for (const method of ["postMessage", "addEventListener", "removeEventListener"] as const) {
    define(method, scope[method].bind(scope));
  }
  if (globalThis.navigator === undefined) {
    const userAgent = `Node.js/${process.versions.node}`;
    define("navigator", { hardwareConcurrency: availableParallelism(), userAgent });
  }
  // wgpu looks for WebGPU only where there is a class of this name.
  if (!("WorkerGlobalScope" in globalThis)) define("WorkerGlobalScope", ThreadScope);
  define("fetch", fetchOrRead(globalThis.fetch));
  // Without listeners, Node would end the thread. The engine decides what a failure means for it.
  process.on("uncaughtException", (error) => scope.reportUncaught(error));
  process.on("unhandledRejection", (reason) => scope.reportRejection(reason));
}

function define(name: string, value: unknown): void {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}

class ThreadScope extends EventTarget implements WorkerScope {
  #port: ThreadPort;

  constructor(port: ThreadPort) {
    super();
    this.#port = port;
    port.on("message", (received: ThreadMessage | DecodeReply) => {
      if (isDecodeReply(received)) return takeReply(received);
      const { message, ports } = received;
      const event = new MessageEvent("message", { data: message });
      // Not in the constructor's argument, which accepts only some kinds of ports.
      Object.defineProperty(event, "ports", { value: ports });
      this.dispatchEvent(event);
    });
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message);
  }

  reportUncaught(error: unknown): void {
    if (this.#isTaken("error", { error })) return;
    const message = `the engine worker failed: ${messageOf(error)}`;
    const failure = { code: "internal_error", message };
    this.postMessage({ type: "failed", failure, permanent: false } satisfies WorkerToPage);
  }

  reportRejection(reason: unknown): void {
    // As in a browser, the thread goes on.
    if (!this.#isTaken("unhandledrejection", { reason })) console.error(reason);
  }

  #isTaken(type: string, members: object): boolean {
    return !this.dispatchEvent(Object.assign(new Event(type, { cancelable: true }), members));
  }
}

/** `network`, and whole files at `file:` URLs. */
function fetchOrRead(network: typeof fetch): typeof fetch {
  return async (input, init) => {
    const url = input instanceof Request ? input.url : `${input}`;
    if (!url.startsWith("file:")) return network(input, init);
    const bytes = await readFile(fileURLToPath(url));
    // Compilation while the file is read requires this type.
    const type = url.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(bytes, { headers: { "content-type": type } });
  };
}
