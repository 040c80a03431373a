//! One engine for all tabs of the site that ask for the same one: the tab that holds a lock runs it, and the others send
//! their exchanges and calls there. When that tab ends or does not answer any more, the next one starts the engine.
//!
//! One engine for the tabs of a site (`shared_messages.ts`). The holder of a Web Lock runs the engine; the others
//! open exchanges with it over broadcast channels. The name of the lock is a hash of the version, the model's identity
//! and all options, so an engine never answers for a page that asked for another one. `setLora` is the one call that
//! would change that: an engine that is shared by default leaves the sharing first. Requests that lose the engine's tab
//! are run again by the next one, as after any other loss.
//!
//! Longer than other files: a keeper changes between holder and guest, so both are states of one object.

import { type Deferred, deferred } from "../exchange/abort.js";
import type { EngineChange } from "../exchange/engine_change.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import { EngineFailure, codeOf, messageOf } from "../exchange/error_response.js";
import type { LoraLocation, WireFailure } from "../exchange/protocol.js";
import { InpageError } from "../api/inpage_error.js";
import type { AnsweringWorker, Keeper } from "../thread/keeper.js";
import { refuse } from "../exchange/refusal.js";
import { SharedExchange, openForOther } from "./shared_exchange.js";
import type { Call, Message, Standing } from "./shared_messages.js";

/** A tab that waits for an answer asks this often whether the engine's tab is there. */
const ASK_INTERVAL_MS = 2000;

/**
 * After this many questions without an answer the tab counts as frozen, and another one takes its place. A random number is added, so that
 * only one does.
 */
const MAX_SILENT_QUESTIONS = 10;

/** The functions with which a [`SharedKeeper`] starts an engine in its tab and reports changes to it. */
export interface SharedHooks {
  /** Starts the engine in this tab. */
  start(): Keeper;
  /** The engine runs in another tab, which reports this, or that tab has ended. */
  onChange(change: EngineChange): void;
  /** Some tab has set these adapters: an engine that is started from now on begins with them. */
  onLora(lora: LoraLocation[]): void;
}

interface OpenCall {
  call: Call;
  result: Deferred<unknown>;
}

export class SharedKeeper implements Keeper {
  readonly #hooks: SharedHooks;
  readonly #id = crypto.randomUUID();
  readonly #disposed = new AbortController();
  readonly #exchanges = new Set<SharedExchange>();
  readonly #calls = new Map<string, OpenCall>();
  readonly #facade: AnsweringWorker;
  #key = "";
  #channel: BroadcastChannel | undefined;
  /** Ends the ownership, or the wait for it. */
  #tenure = new AbortController();
  #owner: string | undefined;
  #own: Keeper | undefined;
  /** True if this tab or another one ran the engine before. */
  #hadOwner = false;
  /** The error with which this tab could not start the engine. */
  #startFailure: unknown;
  /** The last report of this tab's engine. */
  #standing: Standing = { progress: undefined, state: "loading" };
  /** True if no more requests come from this tab. */
  #isRetired = false;
  #unanswered = 0;
  readonly #patience = MAX_SILENT_QUESTIONS + Math.floor(Math.random() * 5);
  /** Resolves when this tab's engine has loaded, if requests that ran before wait for it. */
  #loaded: Promise<unknown> = Promise.resolve();

  /** @param key says which engine; tabs with the same key share one */
  constructor(key: Promise<string>, hooks: SharedHooks) {
    this.#hooks = hooks;
    this.#facade = this.#createFacade();
    void key.then((resolved) => this.#open(resolved));
  }

  get worker(): AnsweringWorker {
    return this.#facade;
  }

  /** Tells the other tabs what has happened to the shared engine, if this tab runs it. */
  report(change: EngineChange): void {
    if (change.type === "progress") this.#standing.progress = change.progress;
    if (change.type === "statechange") this.#standing.state = change.state;
    if (this.#own) this.#post({ type: "change", change });
  }

  async connect(port: MessagePort, afterLoss = false): Promise<AbortSignal> {
    if (this.#disposed.signal.aborted) {
      const failure = new EngineFailure("engine_unavailable", "the engine was disposed");
      if (afterLoss) throw failure;
      refuse(port, failure);
    } else if (this.#startFailure !== undefined) {
      refuse(port, new EngineFailure("engine_unavailable", messageOf(this.#startFailure)));
    } else if (this.#own) {
      const own = this.#own;
      await this.#loaded;
      return own.connect(port, afterLoss);
    } else {
      const exchange = new SharedExchange(port, (ended) => {
        this.#exchanges.delete(ended);
        this.#disposeIfDone();
      });
      this.#exchanges.add(exchange);
      this.#attach(exchange);
    }
    return NEVER;
  }

  async restart(): Promise<void> {
    await this.#call({ method: "restart" });
  }

  /** This tab no longer uses the engine; if it runs it, another tab that uses it starts its own. */
  async dispose(): Promise<void> {
    if (this.#disposed.signal.aborted) return;
    this.#disposed.abort();
    const ended = new DOMException("the engine was disposed", "AbortError");
    for (const { result } of this.#calls.values()) result.reject(ended);
    this.#calls.clear();
    this.#loseExchanges("the engine was disposed");
    await this.#endTenure();
    this.#closeChannel();
  }

  /**
   * This tab shares no longer, and keeps the engine if it runs it: the other tabs start another one.
   *
   * @returns the engine that this tab runs
   */
  takeAlong(): Keeper | undefined {
    const own = this.#own;
    if (own === undefined) return undefined;
    this.#isRetired = true;
    this.#own = undefined;
    this.#disposed.abort();
    this.#tenure.abort();
    this.#closeChannel();
    return own;
  }

  /** This tab sends no more requests, and shares no longer when those in flight have ended. */
  retire(): void {
    this.#isRetired = true;
    this.#disposeIfDone();
  }

  /** Progress may still be reported. */
  #closeChannel(): void {
    this.#channel?.close();
    this.#channel = undefined;
  }

  #disposeIfDone(): void {
    if (this.#isRetired && this.#exchanges.size + this.#calls.size === 0) void this.dispose();
  }

  /** The worker of the tab that runs the engine, as this tab sees it. */
  #createFacade(): AnsweringWorker {
    const ready = async () => void (await this.#call({ method: "ready" }));
    const openExchanges = () => this.#exchanges.size + (this.#own?.worker.openExchanges ?? 0);
    return {
      loadFailure: undefined,
      get ready() {
        return ready();
      },
      get openExchanges() {
        return openExchanges();
      },
      info: () => this.#call({ method: "info" }) as Promise<EngineInfo>,
      setLora: async (lora) => {
        await this.#call({ method: "setLora", lora });
        this.#post({ type: "lora", lora });
      },
      pauseDownload: (isPaused) => {
        this.#call({ method: "pauseDownload", isPaused }).catch(() => {});
      },
      fail: (reason) => {
        for (const { result } of this.#calls.values()) result.reject(reason);
        this.#calls.clear();
      },
    };
  }

  #open(key: string): void {
    if (this.#disposed.signal.aborted) return;
    this.#key = key;
    this.#channel = new BroadcastChannel(`inpage-engine:${key}`);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => this.#take(data);
    const { signal } = this.#disposed;
    // The engine of a page in the back/forward cache answers no requests, and would hold GPU memory besides the next engine.
    const leave = () => void this.#endTenure();
    const onPageHide = ({ persisted }: PageTransitionEvent) => {
      if (persisted) leave();
    };
    const join = () => {
      if (this.#tenure.signal.aborted) this.#join();
    };
    addEventListener("pagehide", onPageHide, { signal });
    addEventListener("pageshow", join, { signal });
    document.addEventListener("freeze", leave, { signal });
    document.addEventListener("resume", join, { signal });
    const watch = setInterval(() => this.#watch(), ASK_INTERVAL_MS);
    signal.addEventListener("abort", () => clearInterval(watch), { once: true });
    this.#join();
  }

  /** Takes over from a tab that was frozen without an event, as by systems that suspend browsers. */
  #watch(): void {
    const waits = this.#calls.size + this.#exchanges.size > 0;
    if (this.#own || !waits || this.#tenure.signal.aborted) {
      this.#unanswered = 0;
    } else if (++this.#unanswered > this.#patience) {
      this.#unanswered = 0;
      this.#tenure.abort();
      this.#join(true);
    } else {
      this.#post({ type: "who" });
    }
  }

  /** Waits in line for the engine, or takes the place of the tab that has it. */
  #join(steal = false): void {
    const tenure = new AbortController();
    this.#tenure = tenure;
    const { signal } = tenure;
    const own = async () => {
      if (signal.aborted) return;
      this.#setOwner(undefined);
      try {
        this.#own = this.#hooks.start();
      } catch (error) {
        this.#startFailure = error;
        this.#facade.fail(error);
        this.#loseExchanges(messageOf(error), true);
        tenure.abort();
        return;
      }
      // Requests that used the previous engine wait for the new one, instead of getting a 503.
      const { ready } = this.#own.worker;
      this.#loaded = this.#hadOwner ? ready.catch(() => {}) : Promise.resolve();
      this.#setOwner(this.#id);
      this.#postOwner();
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    };
    const options = steal ? { steal } : { signal };
    navigator.locks.request(`inpage-engine:${this.#key}`, options, own).catch(async (error) => {
      if (signal.aborted) return;
      // Locks are denied here, as in some frames: this tab runs the engine alone.
      if (error.name !== "AbortError") return own();
      // Another tab has taken the place of this one.
      await this.#endTenure();
      if (!this.#disposed.signal.aborted && this.#tenure === tenure) this.#join();
    });
    this.#post({ type: "who" });
  }

  #postOwner(): void {
    this.#post({ type: "owner", owner: this.#id, ...this.#standing });
  }

  async #endTenure(): Promise<void> {
    this.#tenure.abort();
    const own = this.#own;
    this.#own = undefined;
    this.#standing.progress = undefined;
    if (own === undefined) return;
    this.#setOwner(undefined);
    await own.dispose();
  }

  #take(message: Message): void {
    switch (message.type) {
      case "owner":
        this.#unanswered = 0;
        // A tab that was frozen sends this before it learns that this one has taken its place.
        if (this.#own || message.owner === this.#owner) break;
        this.#setOwner(message.owner);
        if (message.progress)
          this.#hooks.onChange({ type: "progress", progress: message.progress });
        this.#hooks.onChange({ type: "statechange", state: message.state });
        break;
      case "who":
        if (this.#own) this.#postOwner();
        break;
      case "open":
        if (this.#own && message.owner === this.#id)
          this.#openForOther(this.#own, message.exchange);
        break;
      case "call":
        if (this.#own && message.owner === this.#id) void this.#answer(message.id, message.call);
        break;
      case "result":
        this.#settle(message.id, message.value, message.failure);
        break;
      case "change":
        this.#hooks.onChange(message.change);
        break;
      case "lora":
        this.#hooks.onLora(message.lora);
        break;
    }
  }

  #setOwner(owner: string | undefined): void {
    if (owner === this.#owner) return;
    const message = "the tab that ran the engine was closed or frozen";
    if (this.#owner !== undefined && !this.#disposed.signal.aborted) {
      this.#hooks.onChange({ type: "lost", failure: { code: "engine_unavailable", message } });
      this.#hooks.onChange({ type: "statechange", state: "loading" });
    }
    this.#owner = owner;
    this.#hadOwner ||= owner !== undefined;
    this.#loseExchanges(message);
    for (const exchange of this.#exchanges) this.#attach(exchange);
    for (const [id, { call }] of this.#calls) this.#ask(id, call);
  }

  /** Ends the exchanges with the previous owner; their requesters ask again. */
  #loseExchanges(message: string, includeWaiting = this.#disposed.signal.aborted): void {
    for (const exchange of [...this.#exchanges]) {
      const waits = !exchange.isAttached && !includeWaiting;
      if (!waits) exchange.lose({ code: "engine_unavailable", message });
    }
  }

  /** Without an owner, the exchange waits for one. */
  #attach(exchange: SharedExchange): void {
    if (this.#owner === undefined) return;
    const name = crypto.randomUUID();
    exchange.attach(name);
    if (this.#own) this.#openForOther(this.#own, name);
    else this.#post({ type: "open", owner: this.#owner, exchange: name });
  }

  #openForOther(own: Keeper, exchange: string): void {
    const { port1, port2 } = new MessageChannel();
    openForOther(
      exchange,
      port1,
      this.#loaded.then(() => own.connect(port2)),
    );
  }

  #call(call: Call): Promise<unknown> {
    const id = crypto.randomUUID();
    const result = deferred<unknown>();
    if (this.#disposed.signal.aborted) {
      result.reject(new DOMException("the engine was disposed", "AbortError"));
    } else if (this.#startFailure !== undefined) {
      result.reject(this.#startFailure);
    } else {
      this.#calls.set(id, { call, result });
      this.#ask(id, call);
    }
    return result.promise;
  }

  #ask(id: string, call: Call): void {
    if (this.#own) void this.#answer(id, call);
    else if (this.#owner !== undefined) {
      this.#post({ type: "call", owner: this.#owner, id, call });
    }
  }

  /** Performs a call of this or another tab, as the owner. */
  async #answer(id: string, call: Call): Promise<void> {
    const own = this.#own;
    if (own === undefined) return;
    let value: unknown;
    let failure: WireFailure | undefined;
    try {
      if (call.method === "ready") await this.#ready(own, id);
      else if (call.method === "info") value = await own.worker.info();
      else if (call.method === "restart") await own.restart();
      else if (call.method === "pauseDownload") own.worker.pauseDownload(call.isPaused);
      else await own.worker.setLora(call.lora);
      if (call.method === "setLora") this.#hooks.onLora(call.lora);
    } catch (error) {
      // The engine was disposed because this tab no longer runs it: the next owner answers.
      if (own !== this.#own && !this.#isRetired) return;
      failure = { code: codeOf(error, "internal_error"), message: messageOf(error) };
    }
    if (this.#calls.has(id)) this.#settle(id, value, failure);
    else this.#post({ type: "result", id, value, ...(failure && { failure }) });
  }

  /** A tab that joins does not get the failure of an earlier load: the model is loaded again, as in an engine of its own. */
  async #ready(own: Keeper, id: string): Promise<void> {
    const isOfOther = !this.#calls.has(id);
    if (isOfOther && own.worker.loadFailure) await own.restart();
    else await own.worker.ready;
  }

  #settle(id: string, value: unknown, failure: WireFailure | undefined): void {
    const open = this.#calls.get(id);
    this.#calls.delete(id);
    if (failure) open?.result.reject(InpageError.local(failure.code, failure.message));
    else open?.result.resolve(value);
    this.#disposeIfDone();
  }

  #post(message: Message): void {
    this.#channel?.postMessage(message);
  }
}

/** Over a broadcast channel, a loss is reported by a message, so this signal never aborts. */
const NEVER = new AbortController().signal;
