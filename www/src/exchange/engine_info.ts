//! What `engine.info()` reports.

import type { EngineInfo as EngineState, LoadReport } from "../generated/types.js";

/** While the model loads, the members of the load report are missing; if the engine has failed, all are. */
export type EngineInfo = Partial<EngineState & LoadReport>;
