//! The addresses of the package's other files. This file is at the root of the scripts, because `index.js`, which contains it after
//! the build, is there, too: an address must name the same file in both.

/** Starts the engine worker's script. */
// Bundlers recognise this expression.
export const startPackagedWorker = () =>
  new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "inpage" });

// Bundlers do not recognise this one: a build that does not use the model is 2.4 MB smaller. `embedded.ts` is for those that do.
const beside = (path: string, script: string) => new URL(path, script);

/** The embedded model, where the package's files are as they were packed. */
export const embeddedModel = () => beside("../models/tales.gguf", import.meta.url);
