//! Hooks for React over one engine per page. They start nothing while a page is rendered on a server.

import type { getEngine } from "../engine/get_engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import { type ChatHookOptions, type ChatState, chatHook } from "./use_chat.js";
import {
  type CompletionHookOptions,
  type CompletionState,
  completionHook,
} from "./use_completion.js";
import { type EngineState, engineHook } from "./use_engine.js";
import { type ListedModel, modelsHook } from "./use_models.js";

export interface Hooks {
  /**
   * The engine of this page for these options, whose load starts when the component is mounted. Components with equal options share
   * one engine, which outlives them: `engine.dispose()` ends it.
   */
  useEngine(options?: EngineOptions): EngineState;
  /** Streamed completions in a component. A component that is unmounted stops its generation. */
  useCompletion(options?: CompletionHookOptions): CompletionState;
  /** A conversation in a component, with tools. A component that is unmounted stops its answer. */
  useChat(options?: ChatHookOptions): ChatState;
  /** The models of the engine for these options and their states. */
  useModels(options?: EngineOptions): readonly ListedModel[];
}

/** Hooks whose engines come from `get`. */
export function hooksWith(get: typeof getEngine): Hooks {
  const useEngine = engineHook(get);
  return {
    useEngine,
    useCompletion: completionHook(get, useEngine),
    useChat: chatHook(get, useEngine),
    useModels: modelsHook(useEngine),
  };
}
