//! A hidden frame with the engine worker in it: `service_worker/isolated_frame.ts` is its other side. Whether a page needs one
//! is decided in `isolation.ts`.
//!
//! In a page that is not isolated, a frame is. Activations sent by `MessagePort` would cost more than a second thread
//! saves, and the headers that isolate a page need a server and cut it off from other sites. The service worker answers
//! a hidden frame with `Document-Isolation-Policy`, and the engine worker runs there with the origin, the storage and
//! the locks of the page. Messages pass through the frame; the ports of exchanges go to the worker itself.
//! `engine_thread.ts` starts a plain worker in any case, because only a bundler knows the URL of the script, which
//! the worker reports. The frame's worker replaces it before the page's first message, or not at all. The frame holds a
//! Web Lock, so the page notices that it is gone: a `MessagePort` in Chromium does not report that. A service worker
//! whose URL names no base paths is not asked for frames, because a foreign one never answers.

import { type Deferred, deferred } from "../exchange/abort.js";
import {
  type ConnectToFrame,
  FRAME_CONNECT,
  type FrameToPage,
  type PageToFrame,
} from "../exchange/isolated_frame.js";
import type { EngineThread } from "../platform.js";
import { addHiddenFrame } from "../site/hidden_frame.js";
import { siteLocks } from "../site/site_locks.js";

/** The time that the frame may take to listen, the start of the service worker included. */
const CONNECT_TIMEOUT_MS = 8000;

/** The engine's thread in a frame of this page. When the frame is removed or crashes, that is an error of the thread. */
export class IsolatedFrame implements EngineThread {
  onmessage: EngineThread["onmessage"] = null;
  onerror: EngineThread["onerror"] = null;
  readonly #element: HTMLIFrameElement;
  readonly #port: MessagePort;
  readonly #ended = new AbortController();
  readonly #isolated = deferred<void>();
  readonly #lock = `inpage-frame:${crypto.randomUUID()}`;
  /** Pending until the worker's script listens. */
  #started: Deferred<void> | undefined;

  /** Loads the frame at `url`, which the service worker answers. */
  constructor(url: string) {
    const { port1, port2 } = new MessageChannel();
    const { signal } = this.#ended;
    this.#port = port1;
    port1.onmessage = ({ data }: MessageEvent<FrameToPage>) => this.#take(data);
    const connect = () => {
      const message: ConnectToFrame = { type: FRAME_CONNECT, lock: this.#lock };
      this.#element.contentWindow?.postMessage(message, location.origin, [port2]);
    };
    const onViolation = ({ blockedURI, effectiveDirective }: SecurityPolicyViolationEvent) => {
      if (effectiveDirective === "frame-src" && blockedURI === url) {
        this.#fail("the page's content security policy forbids the frame (frame-src)");
      }
    };
    document.addEventListener("securitypolicyviolation", onViolation, { signal });
    const late = setTimeout(() => this.#fail("the frame does not answer"), CONNECT_TIMEOUT_MS);
    const onTime = () => clearTimeout(late);
    this.#isolated.promise.then(onTime, onTime);
    this.#element = addHiddenFrame(url, (element) =>
      element.addEventListener("load", connect, { once: true, signal }),
    );
  }

  /** Resolves when the frame listens and its workers can share memory; rejects if they cannot. */
  get isolated(): Promise<void> {
    return this.#isolated.promise;
  }

  /** Starts the engine worker; resolves when its script listens, rejects if it cannot be started. */
  start(script: string): Promise<void> {
    const started = deferred<void>();
    if (this.#ended.signal.aborted) started.reject(new Error("the frame is gone"));
    this.#started = started;
    this.#post({ type: "start", script }, []);
    return started.promise;
  }

  postMessage(message: unknown, options?: Transferable[] | StructuredSerializeOptions): void {
    const transfer = Array.isArray(options) ? options : (options?.transfer ?? []);
    this.#post({ type: "message", message }, transfer);
  }

  /** Removes the frame, which ends its worker. */
  terminate(): void {
    this.#ended.abort();
    this.#isolated.reject(new Error("the engine was stopped"));
    this.#started?.reject(new Error("the engine was stopped"));
    this.#port.close();
    this.#element.remove();
  }

  #post(message: PageToFrame, transfer: Transferable[]): void {
    this.#port.postMessage(message, transfer);
  }

  #take(sent: FrameToPage): void {
    if (this.#ended.signal.aborted) return;
    if (sent.type === "error") {
      this.#fail(sent.message);
    } else if (sent.type === "connected") {
      if (sent.isolated) this.#watch();
      else this.#fail("the browser does not isolate the frame");
    } else if (this.#started) {
      this.#started.resolve();
      this.#started = undefined;
    } else {
      const event = new MessageEvent("message", { data: sent.message });
      this.onmessage?.call(this as unknown as Worker, event);
    }
  }

  /** From now on, notices that the app has removed or moved the frame, and that its process has crashed. */
  #watch(): void {
    const gone = () => this.#fail("its frame is gone");
    siteLocks().request(this.#lock, { signal: this.#ended.signal }, gone).catch(gone);
    this.#isolated.resolve();
  }

  #fail(message: string): void {
    if (this.#ended.signal.aborted) return;
    this.#isolated.reject(new Error(message));
    this.#started?.reject(new Error(message));
    this.terminate();
    const event = new ErrorEvent("error", { message, cancelable: true });
    this.onerror?.call(this as unknown as Worker, event);
  }
}
