//! The interface `LanguageModel` of Chrome's Prompt API over an engine. What a session does is the concern of `session.ts`.

import type { getEngine } from "../engine/get_engine.js";
import { type CreateMonitor, downloadMonitor } from "./download_monitor.js";
import { type Availability, EngineSource, type PromptApiOptions } from "./engine_source.js";
import { type Expectations, checkExpected, isTaken } from "./expected.js";
import { contextOf, measure } from "./measure.js";
import { type PromptMessage, readPrompt } from "./prompts.js";
import { quotaExceeded } from "./quota_error.js";
import { type SamplingMode, modeOf, settingsOf } from "./sampling_mode.js";
import { LanguageModelSession, type SessionStart } from "./session.js";
import { type LanguageModelTool, checkTools } from "./tools.js";

export type { Availability, PromptApiOptions } from "./engine_source.js";

/** The capabilities that a page expects of the model. */
export interface CoreOptions extends Expectations {
  /** The variety of answers; `balanced`, which is what the model's makers recommend, if omitted. */
  samplingMode?: SamplingMode;
  /** The setting itself, in place of a mode. The default of the endpoint if omitted. */
  temperature?: number;
  topK?: number;
  /** Functions that the model may call. */
  tools?: readonly LanguageModelTool[];
}

export interface CreateOptions extends CoreOptions {
  /** Aborts the creation, and later destroys the session. */
  signal?: AbortSignal;
  /** Is given a target of `downloadprogress` events, whose `loaded` is a part of 1. */
  monitor?: (target: CreateMonitor) => void;
  /** Messages before the first prompt. A system message must be the first one. */
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
    const source = new EngineSource(get, options);
    const takes = async (wanted: CoreOptions) =>
      isTaken(wanted, checkExpected(wanted) && (await source.maySee()));
    return class LanguageModel extends LanguageModelSession {
      static async availability(wanted: CoreOptions = {}): Promise<Availability> {
        modeOf(wanted);
        return (await takes(wanted)) ? source.state : "unavailable";
      }

      static async params() {
        return { ...PARAMS };
      }

      static async create(wanted: CreateOptions = {}): Promise<LanguageModel> {
        const { signal, monitor } = wanted;
        signal?.throwIfAborted();
        const progress = monitor && downloadMonitor(monitor);
        try {
          const { initial: reading, ...others } = conversationOf(wanted);
          if (!isTaken(wanted, !others.takesImages || (await source.maySee()))) throw refusal();
          const engine = await source.load(progress?.report, signal);
          // Whether a folder has a vision tower is known only after the load.
          if (!(await takes(wanted))) throw refusal();
          progress?.end();
          const start = await measured({ engine, initial: await reading, ...others }, signal);
          signal?.throwIfAborted();
          return new LanguageModel(start, signal);
        } catch (error) {
          signal?.throwIfAborted();
          throw error;
        } finally {
          progress?.close();
        }
      }
    };
  };
}

/** The session that is wanted, before there is an engine and its images are read. */
function conversationOf(wanted: CreateOptions) {
  const { initialPrompts = [], tools = [], temperature, topK } = wanted;
  const samplingMode = modeOf(wanted);
  const sampling = samplingMode === null ? { temperature, topK } : settingsOf(samplingMode);
  const takesImages = checkExpected(wanted);
  checkTools(tools);
  const { messages: initial, continues } = readPrompt(initialPrompts, takesImages);
  if (continues) throw new DOMException("prefix is for prompts", "SyntaxError");
  return { initial, later: [], sampling, samplingMode, tools, takesImages };
}

/** @throws DOMException named `QuotaExceededError` if the initial prompts exceed the context */
async function measured(
  start: Omit<SessionStart, "contextUsage" | "contextWindow">,
  signal: AbortSignal | undefined,
): Promise<SessionStart> {
  const { engine, initial, tools } = start;
  const contextWindow = await contextOf(engine, signal);
  const contextUsage = await measure(engine, initial, { tools, signal });
  if (contextUsage > contextWindow) {
    const message = `initialPrompts have ${contextUsage} tokens, and the context of the model ${contextWindow}`;
    throw quotaExceeded(message, { requested: contextUsage, quota: contextWindow });
  }
  return { ...start, contextUsage, contextWindow };
}

const refusal = () =>
  new DOMException("the model does not take or give what is expected of it", "NotSupportedError");

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
