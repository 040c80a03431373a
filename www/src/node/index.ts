//! The public API of the package in Node, Deno and Bun: that of `../index.ts`, with what differs outside of a browser.

import { usePlatform } from "../platform.js";
import { nodePlatform } from "./platform.js";

export * from "../exports.js";
export { serveFromPage, servedFetch } from "./browser_only.js";
export { createEngine } from "./create_engine.js";
export { getEngine } from "./get_engine.js";

usePlatform(nodePlatform);
