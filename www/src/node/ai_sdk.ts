//! `inpage/ai-sdk` outside of a browser.

import { providerWith } from "../ai_sdk/provider.js";
import { getEngine } from "./index.js";

export type * from "../ai_sdk/index.js";

/** A provider over an engine, or over the one for these options, which is started with the first call. */
export const createInpage: ReturnType<typeof providerWith> = providerWith(getEngine);

/** The provider with the default engine. */
export const inpage = createInpage();
