//! Checks the `models` option: which names requests may use for which model, and the options of each.

import type { EngineOptions, OneOfModels } from "./engine_options.js";
import { type ModelOption, type ModelWithId, resolveModel } from "./model.js";
import { resolveDraftModel } from "./draft_model.js";
import { resolveProjector } from "./projector.js";

/** One of several models. */
export interface NamedModel {
  /** The id in requests and in lists. */
  name: string;
  aliases: readonly string[];
  /** The capabilities of the model, as far as the app has said. */
  capabilities: readonly string[] | undefined;
  /** The options of an engine with this model alone. */
  options: EngineOptions;
}

/** The name that no model can have: it means the model that fits the request. */
export const DEFAULT_NAME = "default";

/** @throws TypeError that says which option cannot be used */
export function resolveModels(options: EngineOptions): NamedModel[] {
  const { model, models, fetchOrigins: _fetchOrigins, ...ofAll } = options;
  if (model !== undefined) throw new TypeError("model and models exclude each other");
  for (const name of ["fallbackModels", "fitMemory"] as const) {
    if (ofAll[name] !== undefined) throw new TypeError(`${name} is for an engine with one model`);
  }
  for (const name of ["projector", "draftModel"] as const) {
    if (ofAll[name] !== undefined) {
      throw new TypeError(
        `${name}: give it beside its model, as in models: { name: { model, ${name} } }`,
      );
    }
  }
  if (!isPlainObject(models)) {
    throw new TypeError("models must be an object of models by their names");
  }
  const entries = Object.entries(models);
  if (entries.length === 0) throw new TypeError("models names no model");
  const named = entries.map(([name, given]) => namedModel(name, given, ofAll));
  refuseDuplicates(named);
  const { defaultModel } = ofAll.endpoint ?? {};
  if (typeof defaultModel === "string" && !named.some((it) => isNameOf(it, defaultModel))) {
    throw new TypeError(`endpoint.defaultModel: there is no model "${defaultModel}" in models`);
  }
  return named;
}

/** True if requests may use `name` for the model. */
export function isNameOf({ name, aliases }: NamedModel, asked: string): boolean {
  return name === asked || aliases.includes(asked);
}

function namedModel(name: string, given: unknown, ofAll: EngineOptions): NamedModel {
  const place = `models[${JSON.stringify(name)}]`;
  checkName(name, "models");
  const own = isOneOfModels(given) ? given : { model: given as ModelOption };
  const { model, aliases = [], capabilities, ...rest } = own;
  checkTexts(aliases, `${place}.aliases`);
  for (const alias of aliases) checkName(alias, `${place}.aliases`);
  if (capabilities !== undefined) checkTexts(capabilities, `${place}.capabilities`);
  const load = { ...ofAll.load, ...rest.load };
  const endpoint = { ...ofAll.endpoint, ...rest.endpoint };
  // A model that is larger than the whole budget is refused by its own load, with its sizes.
  const options = { ...ofAll, ...rest, load, endpoint, model: withId(model, name, place) };
  try {
    resolveModel(options.model, ofAll.hub);
    resolveProjector(options.projector, ofAll.hub);
    resolveDraftModel(options.draftModel, ofAll.hub);
  } catch (error) {
    throw new TypeError(`${place}: ${(error as Error).message}`);
  }
  return { name, aliases: [...aliases], capabilities, options };
}

/** The model with its name as its id. */
function withId(model: unknown, name: string, place: string): ModelWithId {
  if (typeof model === "string" || model instanceof URL) return { url: model, id: name };
  if (model instanceof Blob) return { file: model, id: name };
  if (!isPlainObject(model)) {
    throw new TypeError(`${place} needs a model: a URL, a file, or an object with one of them`);
  }
  const option = model as ModelWithId;
  if (option.id !== undefined && option.id !== name) {
    throw new TypeError(`${place} has the id "${option.id}": the name of a model is its id`);
  }
  return { ...option, id: name };
}

function isOneOfModels(given: unknown): given is OneOfModels {
  return isPlainObject(given) && "model" in given;
}

/** Whether a value has options as its members, and is not itself a place or a list. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) && !(value instanceof URL) && !(value instanceof Blob);
}

function checkName(name: string, place: string): void {
  if (name === "") throw new TypeError(`${place}: a name is empty`);
  if (name === DEFAULT_NAME) {
    throw new TypeError(
      `${place}: "${DEFAULT_NAME}" means whichever model fits; endpoint.defaultModel chooses one`,
    );
  }
}

function checkTexts(value: unknown, place: string): void {
  if (!Array.isArray(value) || !value.every((text) => typeof text === "string")) {
    throw new TypeError(`${place} must be an array of strings`);
  }
}

function refuseDuplicates(named: readonly NamedModel[]): void {
  const seen = new Set<string>();
  for (const { name, aliases } of named) {
    for (const text of [name, ...aliases]) {
      if (seen.has(text)) throw new TypeError(`models: "${text}" names two models, or one twice`);
      seen.add(text);
    }
  }
}
