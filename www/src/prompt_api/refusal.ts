//! Error answers of the endpoint, as `prompt_api` sees them.

import type { InpageError } from "../api/inpage_error.js";

/** Whether an error is one. It is known by its name, because this entry does not have the class. */
export const isRefusal = (error: unknown): error is InpageError =>
  error instanceof Error && error.name === "InpageError";
