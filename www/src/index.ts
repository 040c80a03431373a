//! The package's entry for pages: one file after the build. `node/index.ts` is the entry of other programs, `exports.ts` what both export.

export * from "./exports.js";
