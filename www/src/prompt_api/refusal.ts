//! Error answers of the endpoint, as `prompt_api` sees them.

import type { InpageError } from "../api/inpage_error.js";

/** Whether an error is one. The entry `index.js` has a copy of the class of its own. */
export const isRefusal = (error: unknown): error is InpageError =>
  error instanceof Error && error.name === "InpageError";
