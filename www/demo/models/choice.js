//! Models that can be loaded, and which one comes back at the next visit. Loading is `current_model.js`'s concern.

import { recall, remember } from "../page/memory.js";
import { isFileOf } from "./places.js";

/** @import { CachedFile, ModelOption, ProjectorOption } from "../../dist/index.js" */

/**
 * A model that the user chose.
 *
 * @typedef {object} Choice
 * @property {string} name shown to the user
 * @property {ModelOption} option
 * @property {ProjectorOption | undefined} [projector]
 * @property {string | undefined} [chatTemplate]
 * @property {string} [catalogName] its name in the catalog, which the example code has
 * @property {"cpu"} [device] the user chose the CPU for it, after a load that ended with the tab
 *
 * The model of the last visit. A page cannot open a local file again by itself, so of a file only its name is left.
 *
 * @typedef {{ choice: Choice, isPaused: boolean } | { fileName: string }} LastModel
 */

/** The model of the package. @type {Choice} */
export const EMBEDDED = { name: "tales", option: "embedded" };

/** The purpose of a model; each use has its own last model. @typedef {"model" | "search-model" | "rank-model"} Use */

/**
 * @param {Choice} choice
 * @param {{ isPaused?: boolean, use?: Use }} [state] whether the user paused its download
 */
export function rememberChoice(
  { name, option, projector, catalogName, device },
  { isPaused = false, use = "model" } = {},
) {
  const isLocal = option instanceof Blob || (typeof option === "object" && "files" in option);
  const place = { option, projector, catalogName, device };
  const kept = isLocal ? { fileName: name } : { name, ...place, isPaused };
  remember(use, JSON.stringify(kept));
}

/**
 * @param {Use} [use]
 * @returns {LastModel | undefined} undefined at the first visit
 */
export function recallChoice(use = "model") {
  /** @type {Record<string, unknown>} */
  let kept;
  try {
    kept = Object(JSON.parse(recall(use) ?? "null"));
  } catch {
    return undefined;
  }
  const { name, option, projector, fileName, isPaused, catalogName, device } = kept;
  if (typeof fileName === "string") return { fileName };
  if (typeof name !== "string" || !isPlace(option)) return undefined;
  const tower = isPlace(projector) ? { projector } : {};
  const named = typeof catalogName === "string" ? { catalogName } : {};
  /** @type {{ device?: "cpu" }} */
  const placed = device === "cpu" ? { device } : {};
  return { choice: { name, option, ...tower, ...named, ...placed }, isPaused: isPaused === true };
}

/**
 * After files were deleted, the model that they are of does not come back: the page would download it again without a
 * question.
 *
 * @param {CachedFile[]} deleted
 */
export function forgetDeleted(deleted) {
  for (const use of /** @type {const} */ (["model", "search-model", "rank-model"])) {
    const last = recallChoice(use);
    if (last === undefined || "fileName" in last) continue;
    if (deleted.some(({ key }) => isFileOf(key, last.choice.option))) remember(use, "null");
  }
}

/**
 * Another version of the page may have stored something else.
 *
 * @param {unknown} value
 * @returns {value is string | { url: string | string[] }}
 */
function isPlace(value) {
  if (typeof value === "string") return value !== "";
  const { url, folder } = Object(value);
  const places = [url ?? folder].flat();
  return places.length > 0 && places.every((place) => typeof place === "string");
}
