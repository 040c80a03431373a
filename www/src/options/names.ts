//! The names of all options of `createEngine`, so that a wrong name is refused with the right one.

import { LOAD_OPTIONS, SWITCHES } from "../generated/types.js";
import type { EngineOptions, LoadOptions, OneOfModels } from "./engine_options.js";
import type { HubOptions } from "./hub.js";
import { InpageError } from "../api/inpage_error.js";
import type { ModelWithId } from "./model.js";
import type { UpstreamOptions } from "../api/upstream.js";

// The types make the compiler find a name that is missing or wrong here.

const ENGINE: Record<keyof EngineOptions, true> = {
  model: true,
  models: true,
  fallbackModels: true,
  memoryBudgetBytes: true,
  fitMemory: true,
  hub: true,
  persist: true,
  lora: true,
  projector: true,
  draftModel: true,
  device: true,
  threads: true,
  isolatedFrame: true,
  load: true,
  onProgress: true,
  signal: true,
  background: true,
  shared: true,
  wasmUrl: true,
  workerUrl: true,
  bodyTransport: true,
  fetchOrigins: true,
  upstream: true,
  endpoint: true,
};

/** The budget is an option of the engine. */
const { memoryBudgetBytes: _, ...LOAD }: Record<keyof LoadOptions | "memoryBudgetBytes", true> =
  LOAD_OPTIONS;

const ONE_OF_MODELS: Record<keyof OneOfModels, true> = {
  model: true,
  aliases: true,
  capabilities: true,
  lora: true,
  projector: true,
  draftModel: true,
  device: true,
  threads: true,
  load: true,
  endpoint: true,
};

/** The switches that can differ between several models. */
const ENDPOINT_OF_ONE: Record<keyof NonNullable<OneOfModels["endpoint"]>, true> = {
  chatTemplate: true,
};

const MODEL: Record<keyof ModelWithId, true> = {
  url: true,
  file: true,
  folder: true,
  files: true,
  id: true,
  cache: true,
  ignoreQuery: true,
  sha256: true,
  fetch: true,
  crossOriginStorage: true,
};

const HUB: Record<keyof HubOptions, true> = {
  baseURL: true,
  token: true,
};

const UPSTREAM: Record<keyof UpstreamOptions, true> = {
  baseURL: true,
  headers: true,
  model: true,
  when: true,
};

/** An option that cannot be used. `cause` is what was thrown for it. */
export function invalidOption(message: string, cause?: unknown): InpageError {
  const error = InpageError.local("invalid_option", message);
  if (cause !== undefined) Object.defineProperty(error, "cause", { value: cause });
  return error;
}

/** Names of one place that exist in another one, with what to say about them. */
type Elsewhere = readonly [names: object, remedy: (name: string) => string];

const IN_ENDPOINT: Elsewhere = [
  SWITCHES,
  (name) => `it is a switch of the endpoint: write endpoint: { ${name} }`,
];
const OF_ALL: Elsewhere = [ENGINE, () => "it is an option of all models, beside models"];
const BESIDE_LOAD: Elsewhere = [
  { memoryBudgetBytes: true },
  () => "it is an option of the engine, beside load",
];

/**
 * Refuses options that do not exist. The module of a worker of the app's own (`workerUrl`) may have further switches: it checks
 * them itself, as the package's module does.
 *
 * @throws InpageError `invalid_option` with the name or the place that was probably meant
 */
export function refuseUnknownOptions(options: EngineOptions): void {
  refuseUnknown(options, ENGINE, "", IN_ENDPOINT);
  if (options.workerUrl === undefined) refuseUnknown(options.endpoint, SWITCHES, "endpoint.");
  refuseUnknown(options.load, LOAD, "load.", BESIDE_LOAD);
  refuseUnknown(options.model, MODEL, "model.");
  refuseUnknown(options.hub, HUB, "hub.");
  refuseUnknown(options.upstream, UPSTREAM, "upstream.");
  for (const [name, given] of Object.entries(options.models ?? {})) {
    const place = `models[${JSON.stringify(name)}].`;
    if (!isPlainObject(given)) continue;
    const isOne = "model" in given || !Object.keys(given).some((it) => it in MODEL);
    refuseUnknown(given, isOne ? ONE_OF_MODELS : MODEL, place, IN_ENDPOINT, OF_ALL);
    if (!isOne) continue;
    const { model, load, endpoint } = given as Partial<OneOfModels>;
    refuseUnknown(model, MODEL, `${place}model.`);
    refuseUnknown(load, LOAD, `${place}load.`, BESIDE_LOAD);
    refuseUnknown(endpoint, ENDPOINT_OF_ONE, `${place}endpoint.`, [SWITCHES, OF_ALL[1]]);
  }
}

function refuseUnknown(
  value: unknown,
  known: object,
  place: string,
  ...elsewhere: readonly Elsewhere[]
): void {
  if (!isPlainObject(value)) return;
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(known, name)) continue;
    const moved = elsewhere.find(([names]) => Object.hasOwn(names, name));
    if (moved) throw invalidOption(`${place}${name}: ${moved[1](name)}`);
    const meant = nearest(name, Object.keys(known));
    const remedy =
      meant === undefined ? `these do: ${Object.keys(known).join(", ")}` : `use ${place}${meant}`;
    throw invalidOption(`the option ${place}${name} does not exist: ${remedy}`);
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** The one of `names` that differs from `name` by a few letters; undefined if none does. */
function nearest(name: string, names: readonly string[]): string | undefined {
  return nearestNames(name, names)[0];
}

/** At most three of `names` that differ from `name` by a few letters, the nearest first. */
export function nearestNames(name: string, names: readonly string[]): string[] {
  const plain = (text: string) => text.toLowerCase().replace(/[_-]/g, "");
  const scored = names.map((it): [number, string] => [distance(plain(name), plain(it)), it]);
  const most = Math.max(2, Math.floor(name.length / 3));
  const near = scored.filter(([differences]) => differences <= most).sort(([a], [b]) => a - b);
  return near.slice(0, 3).map(([, it]) => it);
}

/** Letters that have to be added, removed or changed to make `b` of `a`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
