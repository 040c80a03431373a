//! Whether a model may see images, by the options of its engine alone: the answer of `availability` before a load. The load decides.

import type { EngineOptions } from "../options/engine_options.js";

const GGUF = /\.gguf\b/i;

/**
 * A folder and one of several models may see. A GGUF file does not without a projector. The entry of pages resolves these options, too,
 * but its modules have state and are not copied into this entry.
 */
export async function mayOptionsSee(options: EngineOptions): Promise<boolean> {
  const { model = "embedded", models, projector } = options;
  if (models !== undefined || projector !== undefined) return true;
  if (model instanceof Blob) return false;
  const option = typeof model === "string" || model instanceof URL ? { url: model } : model;
  if (option.file !== undefined) return false;
  if (option.files !== undefined) return ![...option.files].some(({ name }) => GGUF.test(name));
  if (option.folder !== undefined) return true;
  const [place = "embedded"] = [option.url ?? "embedded"].flat().map(String);
  const { catalog } = await import("../catalog/models.js");
  const named = catalog.find(({ name }) => name === place);
  if (named?.files.projector !== undefined) return true;
  const file = named?.files.model ?? place;
  return file !== "embedded" && !GGUF.test(file);
}
