//! `inpage/react` in browsers.

// Not from `engine`, of which the entry `index.js` has a copy: both must know the same engines.
import { getEngine } from "../index.js";
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
