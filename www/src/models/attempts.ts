//! The ways to load a model where memory is short, from what the app asked for to less: a smaller KV cache, a shorter context, the
//! next of `fallbackModels`.

import type { EngineOptions, FallbackModel, LoadOptions } from "../options/engine_options.js";
import { resolveLora } from "../options/lora.js";
import { type ModelOption, resolveModel } from "../options/model.js";
import { resolveDraftModel } from "../options/draft_model.js";
import { resolveProjector } from "../options/projector.js";
import { isPlainObject } from "../options/several_models.js";
import type { RememberedCrash } from "./load_marks.js";

/** One way to load. */
export interface Attempt {
  options: EngineOptions;
  /** The position of its model: 0 is `model`, then come `fallbackModels`. */
  model: number;
  /** The differences from the options of its model. */
  load: Pick<LoadOptions, "contextTokens" | "kvFormat">;
}

/** The contexts that are tried, in tokens. Shorter ones are of little use. */
const CONTEXTS = [2048, 1024];

const DAY_MS = 24 * 3_600_000;

/** The options of each model: `model`, then `fallbackModels`. */
export function optionsOfModels(options: EngineOptions): EngineOptions[] {
  const { fallbackModels = [], ...first } = options;
  if (!Array.isArray(fallbackModels)) throw new TypeError("fallbackModels must be an array");
  const { projector: _projector, draftModel: _draft, lora: _lora, ...ofAll } = first;
  const others = fallbackModels.map((given) => {
    const own: EngineOptions =
      isPlainObject(given) && "model" in given
        ? (given as FallbackModel)
        : { model: given as ModelOption };
    return { ...ofAll, ...own, load: { ...ofAll.load, ...own.load } };
  });
  return [first, ...others];
}

/**
 * The time during which other models are preferred to one whose load ended with its tab: a day, twice as long with each further one. A crash is
 * forgotten after a week.
 */
function isResting({ loads, atMs, loadedSince }: RememberedCrash): boolean {
  return !loadedSince && Date.now() - atMs < DAY_MS * 2 ** (loads - 1);
}

/**
 * The attempts, in their order. A load that ended with its tab is not tried again in the same way, unless no other way is left, nor at
 * once while another model is left.
 *
 * @throws TypeError for an option that cannot be used
 */
export function attemptsOf(
  options: EngineOptions,
  crashes: readonly (RememberedCrash | undefined)[],
  fits: boolean,
): Attempt[] {
  const models = optionsOfModels(options);
  const attempts = models.flatMap((own, model) => {
    resolveModel(own.model, own.hub);
    resolveProjector(own.projector, own.hub);
    resolveDraftModel(own.draftModel, own.hub);
    resolveLora(own.lora ?? [], own.hub);
    const crash = crashes[model];
    const crashed = crash?.loads ?? 0;
    const ways = (fits || crashed > 0 ? waysOf(own.load ?? {}) : [{}]).map((load) => ({
      ...{ model, load },
      options: { ...own, load: withPool(own.load, load) },
    }));
    return models.length > 1 && crash && isResting(crash)
      ? []
      : ways.slice(Math.min(crashed, ways.length - 1));
  });
  if (attempts.length > 0) return attempts;
  const last = models.length - 1;
  return attemptsOf({ ...(models[last] as EngineOptions) }, [crashes[last]], fits).map(
    (attempt) => ({ ...attempt, model: last }),
  );
}

/** A choice of the app stays. */
function waysOf({ contextTokens, kvFormat }: LoadOptions): Attempt["load"][] {
  const ways: Attempt["load"][] = [{}];
  const small = kvFormat === undefined ? { kvFormat: "q8_0" as const } : {};
  if (kvFormat === undefined) ways.push(small);
  if (contextTokens === undefined) {
    for (const tokens of CONTEXTS) ways.push({ ...small, contextTokens: tokens });
  }
  return ways;
}

/** All sequences share a pool, which is no longer than a context that was made shorter. */
function withPool(load: LoadOptions = {}, changed: Attempt["load"]): LoadOptions {
  const { contextTokens } = changed;
  const pool = contextTokens !== undefined && load.kvPoolTokens === undefined;
  return { ...load, ...changed, ...(pool && { kvPoolTokens: contextTokens }) };
}
