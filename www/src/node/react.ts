//! `inpage/react` outside of a browser, for tests of components.

import { type Hooks, hooksWith } from "../react/hooks.js";
import { getEngine } from "./index.js";

export type * from "../react/index.js";

const hooks: Hooks = hooksWith(getEngine);

export const { useEngine, useCompletion, useChat, useModels } = hooks;
