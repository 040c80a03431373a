//! `inpage/react` in browsers.

// Not from `engine`, of which the entry `index.js` has a copy: both must know the same engines.
import { getEngine } from "../index.js";
import { type Hooks, hooksWith } from "./hooks.js";

export type { AssistantMessage } from "../api/growing_message.js";
export type { Hooks } from "./hooks.js";
export type { ChatFields, ToolCallOfChat, TurnOptions } from "./turn.js";
export type { ChatHookOptions, ChatState } from "./use_chat.js";
export type { CompletionFields, CompletionHookOptions, CompletionState } from "./use_completion.js";
export type { EngineState } from "./use_engine.js";
export type { ListedModel } from "./use_models.js";

const hooks: Hooks = /* @__PURE__ */ hooksWith(getEngine);

export const { useEngine, useCompletion, useChat, useModels } = hooks;
