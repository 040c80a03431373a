//! `inpage/embedded`: the model in the package, for apps that a bundler builds. Only a build that imports this entry contains the model.

import type { ModelWithId } from "./options/model.js";

/** The model in the package: `createEngine({ model: embedded })`. */
export const embedded: Readonly<ModelWithId> = {
  // Bundlers recognise this expression.
  url: new URL("../models/tales.gguf", import.meta.url),
  id: "tales",
};
