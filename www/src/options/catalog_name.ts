//! Names of the catalog's models in options: which strings are names, and the files that they stand for. The catalog is loaded
//! when the first name is given.

import { shownUrl } from "../model_source/store/cache_key.js";
import { platform } from "../platform.js";
import type { EngineOptions, FallbackModel, ModelsOption, OneOfModels } from "./engine_options.js";
import type { ModelOption, ModelWithId } from "./model.js";
import { invalidOption, nearestNames } from "./names.js";
import { isPlainObject } from "./several_models.js";

/** Words of letters and digits. */
const NAME = /^[a-z\d]+(?:[._-][a-z\d]+)*$/i;

/** The end of a file's name. The last word of a model's name that follows a dot begins with a digit. */
const EXTENSION = /\.[a-z][a-z\d]*$/i;

/**
 * Whether a place is a name of the catalog's, and not a URL, a file's name or `embedded`. Outside of a browser, a file or folder
 * of that name comes first.
 */
export function isCatalogName(place: unknown): place is string {
  if (typeof place !== "string" || place === "embedded") return false;
  if (!NAME.test(place) || EXTENSION.test(place)) return false;
  return platform().locate?.(place)?.exists !== true;
}

/** The name in a model option, if there is one. */
function nameIn(option: unknown): string | undefined {
  if (isCatalogName(option)) return option;
  if (!isPlainObject(option) || !isCatalogName(option.url)) return undefined;
  return option.url;
}

/** The files of a model of the catalog. */
export interface NamedFiles {
  name: string;
  /** The same file on several servers, or a folder. */
  url: string[];
  projector: string | undefined;
}

/** @throws InpageError `invalid_option` with similar names if the catalog has none of that name */
export async function filesOfName(name: string): Promise<NamedFiles> {
  const { catalog } = await import("../catalog/models.js");
  const found = catalog.find((model) => model.name === name);
  if (found !== undefined) {
    const { model, mirrors = [], projector } = found.files;
    return { name, url: [model, ...mirrors], projector };
  }
  const similar = nearestNames(
    name,
    catalog.map((model) => model.name),
  );
  const meant = similar.length > 0 ? ` (similar names: ${similar.join(", ")})` : "";
  const place = shownUrl(name);
  throw invalidOption(
    `the catalog has no model "${place}"${meant}: npx inpage models lists them. Write "./${place}" for a relative URL or path`,
  );
}

/** A model option with the files in place of a name; others as they are. */
export async function withFiles(
  option: ModelOption,
): Promise<{ model: ModelOption; projector: string | undefined }> {
  const name = nameIn(option);
  if (name === undefined) return { model: option, projector: undefined };
  const { url, projector } = await filesOfName(name);
  const given = isPlainObject(option) ? (option as ModelWithId) : {};
  return { model: { id: name, ...given, url }, projector };
}

/** Whether options name a model of the catalog. */
export function haveName({ model, models, fallbackModels }: EngineOptions): boolean {
  // They exclude each other. The error comes later.
  if (model !== undefined && models !== undefined) return false;
  const others = Array.isArray(fallbackModels) ? fallbackModels : [];
  const several = isPlainObject(models) ? Object.values(models) : [];
  return [model, ...others, ...several].some(
    (one) => nameIn(isPlainObject(one) && "model" in one ? one.model : one) !== undefined,
  );
}

/**
 * The options with files in place of names. A model that sees gets its projector, unless the options have another one.
 *
 * @throws InpageError `invalid_option` for a name that the catalog does not have
 */
export async function withFilesOfNames(options: EngineOptions): Promise<EngineOptions> {
  const { model, models, fallbackModels } = options;
  if (models === undefined) {
    // Other values are refused later.
    const others = Array.isArray(fallbackModels) ? fallbackModels.map(oneOfOthers) : undefined;
    return {
      ...options,
      ...(model !== undefined && (await oneWithFiles(options, model))),
      ...(others && { fallbackModels: await Promise.all(others) }),
    };
  }
  const entries = Object.entries(models).map(async ([name, given]) => [
    name,
    await oneOfSeveral(name, given),
  ]);
  return { ...options, models: Object.fromEntries(await Promise.all(entries)) };
}

async function oneWithFiles<T extends Pick<EngineOptions, "projector">>(
  given: T,
  model: ModelOption,
) {
  const files = await withFiles(model);
  const projector = given.projector ?? files.projector;
  return { model: files.model, ...(projector !== undefined && { projector }) };
}

async function oneOfOthers(
  given: ModelOption | FallbackModel,
): Promise<ModelOption | FallbackModel> {
  const one = isPlainObject(given) && "model" in given ? (given as FallbackModel) : undefined;
  if (nameIn(one?.model ?? given) === undefined) return given;
  const asked = one ?? { model: given as ModelOption };
  return { ...asked, ...(await oneWithFiles(asked, asked.model)) };
}

async function oneOfSeveral(
  name: string,
  given: ModelsOption[string],
): Promise<ModelsOption[string]> {
  const one: OneOfModels =
    isPlainObject(given) && "model" in given
      ? (given as unknown as OneOfModels)
      : { model: given as ModelOption };
  if (nameIn(one.model) === undefined) return given;
  const { model, ...rest } = await oneWithFiles(one, one.model);
  // The name of one of several models is its id.
  const located = { ...(model as ModelWithId) };
  if (!isPlainObject(one.model) || one.model.id === undefined) located.id = name;
  return { ...one, ...rest, model: located };
}
