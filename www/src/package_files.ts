//! The addresses of the package's other files. This file is at the root of the scripts, because `index.js`, which contains it after
//! the build, is there, too: an address must name the same file in both.

// Bundlers recognise these expressions.

/** Starts the engine worker's script. */
export const startPackagedWorker = () =>
  new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "inpage" });

/** The embedded model. */
export const embeddedModel = () => new URL("../models/tales.gguf", import.meta.url);
