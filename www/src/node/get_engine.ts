//! `getEngine` outside of a browser: one engine per program for equal options.

import { engineGetter } from "../engine/get_engine.js";
import { createEngine } from "./create_engine.js";

/**
 * The engine of this program for these options: equal options get the same engine. It runs until `dispose()` is called on it.
 *
 * @throws InpageError as `createEngine` does
 * @throws DOMException named `AbortError` if `signal` aborts first; the load goes on for others
 */
export const getEngine: ReturnType<typeof engineGetter> =
  /* @__PURE__ */ engineGetter(createEngine);
