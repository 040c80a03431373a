//! The catalog: facts and numbers of each model.

import { FACTS } from "./facts.js";
import { NUMBERS } from "./numbers.js";
import type { CatalogModel } from "./types.js";

/** Models that inpage runs, from small to large within a family. */
export const catalog: readonly CatalogModel[] = FACTS.map((facts) => {
  const numbers = NUMBERS[facts.name];
  if (numbers === undefined) throw new Error(`the catalog has no numbers of ${facts.name}`);
  return { ...facts, ...numbers };
});
