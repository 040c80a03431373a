//! The interface `LanguageModel` of Chrome's Prompt API over an engine. What a session does is the concern of `session.ts`.

import type { Engine } from "../engine/engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { getEngine } from "../engine/get_engine.js";
import { type PromptMessage, messagesOf } from "./prompts.js";
import { quotaExceeded } from "./quota_error.js";
import { type SamplingMode, settingsOf } from "./sampling_mode.js";
import { LanguageModelSession, measure } from "./session.js";
import { type LanguageModelTool, checkTools } from "./tools.js";

/** An engine, or the options of one that all sessions share. */
export type PromptApiOptions = { engine: Engine } | EngineOptions;

export type Availability = "unavailable" | "downloadable" | "downloading" | "available";

/** The capabilities that a page expects of the model. */
export interface CoreOptions {
  expectedInputs?: readonly { type: string; languages?: readonly string[] }[];
  expectedOutputs?: readonly { type: string; languages?: readonly string[] }[];
  /** How varied answers are; what the model recommends if omitted. */
  samplingMode?: SamplingMode;
  /** The setting itself, in place of a mode's. The default of the endpoint if omitted. */
  temperature?: number;
  topK?: number;
  /** Functions that the model may call. */
  tools?: readonly LanguageModelTool[];
}

export interface CreateOptions extends CoreOptions {
  signal?: AbortSignal;
  /** Is given a target of `downloadprogress` events, whose `loaded` is a part of 1. */
  monitor?: (target: EventTarget) => void;
  /** Messages before the first prompt, a system message first. */
  initialPrompts?: readonly PromptMessage[];
}

/** The interface. Its sessions are its instances. */
export interface LanguageModelStatic {
  readonly prototype: LanguageModelSession;
  [Symbol.hasInstance](value: unknown): boolean;
  availability(options?: CoreOptions): Promise<Availability>;
  create(options?: CreateOptions): Promise<LanguageModelSession>;
  params(): Promise<{
    defaultTopK: number;
    maxTopK: number;
    defaultTemperature: number;
    maxTemperature: number;
  }>;
}

/**
 * The endpoint's defaults and bounds; its top_k is off by default, and 0 stands for that. They are known before a model is. What
 * a model's files recommend applies instead of the defaults.
 */
const PARAMS = { defaultTopK: 0, maxTopK: 1_000_000, defaultTemperature: 1, maxTemperature: 2 };

/** `createLanguageModel` with engines from `get`. */
export function languageModelWith(get: typeof getEngine) {
  return (options: PromptApiOptions = {}): LanguageModelStatic => {
    let state: Availability = "engine" in options ? "available" : "downloadable";
    const engineFor = async (onProgress: EngineOptions["onProgress"], signal?: AbortSignal) => {
      if ("engine" in options) return options.engine;
      if (state !== "available") state = "downloading";
      try {
        const engine = await get({
          ...options,
          ...(onProgress && { onProgress }),
          ...(signal && { signal }),
        });
        state = "available";
        engine.disposed.addEventListener("abort", () => {
          state = "downloadable";
        });
        return engine;
      } catch (error) {
        // If only this caller has left, the load goes on.
        if (!signal?.aborted) state = "downloadable";
        throw error;
      }
    };
    return class LanguageModel extends LanguageModelSession {
      static async availability(wanted: CoreOptions = {}): Promise<Availability> {
        return takes(wanted) ? state : "unavailable";
      }

      static async params() {
        return { ...PARAMS };
      }

      static async create(wanted: CreateOptions = {}): Promise<LanguageModel> {
        const { signal, monitor, initialPrompts = [], samplingMode, tools = [] } = wanted;
        signal?.throwIfAborted();
        if (!takes(wanted)) {
          throw new DOMException("the model takes and gives text only", "NotSupportedError");
        }
        checkTools(tools);
        const ofMode = samplingMode === undefined ? undefined : settingsOf(samplingMode);
        const { temperature = ofMode?.temperature, topK = ofMode?.topK } = wanted;
        const { messages: initial } = messagesOf(initialPrompts, true);
        const engine = await engineFor(reporterFor(monitor), signal);
        const { count, quota } = await measure(engine, initial, tools, false, signal);
        if (count > quota) {
          const message = `initialPrompts have ${count} tokens, and the context of the model ${quota}`;
          throw quotaExceeded(message, { requested: count, quota });
        }
        return new LanguageModel({
          ...{ engine, initial, later: [], temperature, topK, samplingMode, tools },
          ...{ contextUsage: count, contextWindow: quota },
        });
      }
    };
  };
}

const takes = ({ expectedInputs = [], expectedOutputs = [] }: CoreOptions) =>
  [...expectedInputs, ...expectedOutputs].every(({ type }) => type === "text");

/** Reports the progress of the load as the Prompt API does: from 0 to 1. */
function reporterFor(monitor: CreateOptions["monitor"]): EngineOptions["onProgress"] {
  if (monitor === undefined) return undefined;
  const target = new EventTarget();
  monitor(target);
  return ({ phase, loadedBytes, totalBytes }) => {
    if (phase !== "download" && phase !== "ready") return;
    const part = totalBytes === undefined ? 0 : loadedBytes / totalBytes;
    const loaded = phase === "ready" ? 1 : Math.min(part, 1);
    const event = new Event("downloadprogress");
    target.dispatchEvent(Object.assign(event, { loaded, total: 1, lengthComputable: true }));
  };
}

/**
 * Makes it `globalThis.LanguageModel`, unless the browser has one that can run here. Where there is none, it is set when this
 * returns. Resolves with whether it was set.
 */
export async function install(value: LanguageModelStatic): Promise<boolean> {
  const { LanguageModel: native } = globalThis as { LanguageModel?: LanguageModelStatic };
  if (native !== undefined) {
    const availability = await native.availability().catch(() => "unavailable");
    if (availability !== "unavailable") return false;
  }
  Object.defineProperty(globalThis, "LanguageModel", { value, configurable: true, writable: true });
  return true;
}
