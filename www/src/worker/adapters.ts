//! LoRA adapters in the worker: opens their files and replaces those in use, one change at a time.

import { orAborted } from "../exchange/abort.js";
import { codeOf, messageOf } from "../exchange/error_response.js";
import type { LoraLocation, WireFailure } from "../exchange/protocol.js";
import { ADAPTER_CONFIG } from "../model_source/sources/named_files.js";
import { type OpenOptions, openModel } from "../model_source/open.js";
import type { DownloadPause } from "../model_source/transfer/pause.js";
import type { EngineLife } from "./engine_life.js";
import type { HostedAdapter } from "../wasm/hosted_engine.js";

/** @throws TypeError naming the adapter whose files cannot be opened */
export function openAdapters(lora: LoraLocation[], options: OpenOptions): Promise<HostedAdapter[]> {
  const open = async ({ name, location, scale }: LoraLocation) => {
    try {
      return {
        name,
        scale,
        files: await openModel(location, { ...options, config: ADAPTER_CONFIG }),
      };
    } catch (error) {
      options.signal.throwIfAborted();
      throw new TypeError(`LoRA adapter ${name}: ${messageOf(error)}`);
    }
  };
  return Promise.all(lora.map(open));
}

/** Changes of adapters, in the order in which they were requested: the last one requested stays. */
export class AdapterChanges {
  #life: EngineLife;
  #pause: DownloadPause;
  #last: Promise<unknown> = Promise.resolve();

  constructor(life: EngineLife, pause: DownloadPause) {
    this.#life = life;
    this.#pause = pause;
  }

  /** Replaces the adapters in use by these; resolves with the failure, if any, and never rejects. */
  set(lora: LoraLocation[]): Promise<WireFailure | undefined> {
    const set = this.#last.then(async () => {
      try {
        await this.#replace(lora);
        return undefined;
      } catch (error) {
        this.#life.failureOf(error);
        return { code: codeOf(error, "adapter_not_readable"), message: messageOf(error) };
      }
    });
    this.#last = set;
    return set;
  }

  async #replace(lora: LoraLocation[]): Promise<void> {
    const signal = this.#life.over;
    const engine = await this.#life.engine;
    const ended = new AbortController();
    const reading = AbortSignal.any([signal, ended.signal]);
    try {
      const createHasher = async () => engine.createHasher();
      const options = { signal, reading, pause: this.#pause, createHasher };
      const adapters = await openAdapters(lora, options);
      await orAborted(engine.setLora(adapters), signal);
    } finally {
      ended.abort();
    }
  }
}
