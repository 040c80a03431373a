//! `inpage/react` in browsers.

import { getEngine } from "../page/get_engine.js";
import { type Hooks, hooksWith } from "./hooks.js";

export type {
  CompletionFields,
  CompletionHookOptions,
  CompletionState,
  EngineState,
  Hooks,
} from "./hooks.js";

const hooks: Hooks = /* @__PURE__ */ hooksWith(getEngine);

export const { useEngine, useCompletion } = hooks;
