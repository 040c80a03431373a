//! The recommendations of the catalog for this device: the order of its models, what keeps one from fitting, and an estimate of its speed.

import { recommendModels } from "../../dist/catalog/index.js";
import { measuredSpeed } from "./speed.js";

/**
 * @import { EngineInfo } from "../../dist/index.js"
 * @import { Entry } from "./entries.js"
 *
 * @typedef {object} Advice
 * @property {number} rank 0 for the best model
 * @property {string[]} obstacles why it does not fit
 * @property {number | undefined} rate estimated tokens per second
 * @property {string} basis of the estimate
 */

/**
 * @param {EngineInfo} info of the engine of the page
 * @param {Entry[]} entries
 * @returns {Promise<Map<string, Advice>>} by the names of the entries
 */
export async function adviceFor(info, entries) {
  const measured = entries
    .toSorted((a, b) => b.bytes - a.bytes)
    .map(({ name, choice, places }) => ({
      model: name,
      tokensPerSecond: places.length > 0 ? measuredSpeed(info, choice.name) : undefined,
    }))
    .find(({ tokensPerSecond }) => tokensPerSecond !== undefined);
  const all = await recommendModels({
    device: info.device === "cpu" ? "cpu" : "auto",
    ...(measured?.tokensPerSecond && {
      measured: { model: measured.model, tokensPerSecond: measured.tokensPerSecond },
    }),
  });
  return new Map(
    all.map(({ model, obstacles, tokensPerSecond, basis }, rank) => [
      model.name,
      { rank, obstacles, rate: tokensPerSecond, basis },
    ]),
  );
}
