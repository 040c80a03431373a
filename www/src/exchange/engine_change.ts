//! Changes of an engine, in a form that can be sent to other tabs.

import type { LoadProgress, WireFailure } from "./protocol.js";

/**
 * Whether a model can answer. `failed`: it could not be loaded, or the engine was lost; the next request tries again unless that
 * would fail again. `unloaded`: one of several models that is not loaded. `disposed`: the engine has ended.
 */
export type LoadState = "unloaded" | "loading" | "ready" | "failed" | "disposed";

/** One thing that has happened. `model` says to which of several models. */
export type EngineChange =
  | { type: "progress"; progress: LoadProgress }
  | { type: "statechange"; state: LoadState; model?: string }
  | { type: "lost"; failure: WireFailure; model?: string };
