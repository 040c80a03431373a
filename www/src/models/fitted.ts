//! A model that is loaded in the first way that works: attempts that memory does not suffice for are followed by the next one.

import { deferred, orAborted } from "../exchange/abort.js";
import type { EngineChange } from "../exchange/engine_change.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import type { Answering } from "../api/fetch_door.js";
import type { LoraAdapter } from "../options/lora.js";
import type { Attempt } from "./attempts.js";
import type { EngineCore } from "./engine_core.js";
import type { RememberedCrash } from "./load_marks.js";
import { SingleModel } from "./single.js";

export class FittedModel implements EngineCore {
  readonly answer: Answering;
  readonly ready: Promise<void>;
  readonly #attempts: readonly Attempt[];
  readonly #crashed: RememberedCrash | undefined;
  readonly #onChange: (change: EngineChange) => void;
  #at = 0;
  #current: SingleModel;
  /** The reason why the attempts before the current one failed. */
  #reason: string | undefined;
  /** Resolves when no attempt follows the current one. */
  readonly #decided = deferred<void>();
  #isDecided = false;
  #isPaused = false;
  #isDisposed = false;

  /**
   * @param crashed loads of `model` that ended with their tab
   * @throws TypeError for an option that cannot be used
   */
  constructor(
    attempts: readonly Attempt[],
    crashed: RememberedCrash | undefined,
    onChange: (change: EngineChange) => void,
  ) {
    this.#attempts = attempts;
    this.#crashed = crashed;
    this.#onChange = onChange;
    if (crashed) this.#reason = "an earlier load ended with its tab";
    this.#current = this.#start();
    this.answer = async (request, signal) => {
      const { whenModelNotReady } = attempts[0]?.options.endpoint ?? {};
      if (whenModelNotReady !== "error") await orAborted(this.#decided.promise, signal);
      return this.#current.answer(request, signal);
    };
    this.ready = this.#run();
    this.ready.catch(() => {});
  }

  #start(): SingleModel {
    const { options, load } = this.#attempts[this.#at] as Attempt;
    const onChange = (change: EngineChange) => {
      // The next attempt follows.
      const isFailed = change.type === "statechange" && change.state === "failed";
      if (this.#isDecided || !isFailed) this.#onChange(change);
    };
    return new SingleModel(options, onChange, { isReduced: Object.keys(load).length > 0 });
  }

  async #run(): Promise<void> {
    for (;;) {
      try {
        await this.#current.ready;
        this.#decide();
        return;
      } catch (error) {
        const isLast = this.#at === this.#attempts.length - 1;
        if (this.#isDisposed || isLast || !this.#leavesMore(error)) {
          this.#decide();
          if (!this.#isDisposed) this.#onChange({ type: "statechange", state: "failed" });
          throw error;
        }
        this.#reason = (error as Error).message;
      }
      await this.#current.dispose();
      if (this.#isDisposed) continue;
      this.#at += 1;
      this.#current = this.#start();
      this.#current.pauseDownload(this.#isPaused);
    }
  }

  /** Whether another way may work. A KV cache in fewer bits does not suit every model. */
  #leavesMore(error: unknown): boolean {
    const { code } = error as { code?: unknown };
    const { kvFormat } = (this.#attempts[this.#at] as Attempt).load;
    return code === "out_of_memory" || (code === "unsupported_model" && kvFormat !== undefined);
  }

  #decide(): void {
    this.#isDecided = true;
    this.#decided.resolve();
  }

  fail(reason: unknown): void {
    this.#current.fail(reason);
  }

  async info(): Promise<EngineInfo> {
    const info = await this.#current.info();
    const { model, load } = this.#attempts[this.#at] as Attempt;
    const crashed = this.#crashed;
    const differs = model > 0 || Object.keys(load).length > 0;
    return {
      ...info,
      ...(crashed && { previousLoadCrashed: { loads: crashed.loads, atMs: crashed.atMs } }),
      ...(differs && { fitted: { ...load, fallback: model, reason: this.#reason ?? "" } }),
    };
  }

  pauseDownload(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.#current.pauseDownload(isPaused);
  }

  async setLora(lora: readonly LoraAdapter[]): Promise<void> {
    await this.#decided.promise;
    return this.#current.setLora(lora);
  }

  async reload(): Promise<void> {
    await this.#decided.promise;
    return this.#current.reload();
  }

  async dispose(): Promise<void> {
    this.#isDisposed = true;
    await this.#current.dispose();
  }

  async connect(port: MessagePort): Promise<AbortSignal> {
    await this.#decided.promise;
    return this.#current.connect(port);
  }
}
