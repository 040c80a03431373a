//! `recommendModels`: orders the catalog for a device by what fits it and by an estimate of speed. It starts nothing and downloads
//! nothing.

import { deviceBudgetBytes, pageHints, smallSystem } from "../device_budget.js";
import { platform } from "../platform.js";
import { catalog } from "./models.js";
import type { CatalogModel, CatalogTask } from "./types.js";

/** The purpose of the recommendation. All members are optional. */
export interface RecommendOptions {
  task?: CatalogTask;
  /** A language that the makers name, as a BCP 47 tag; `mul` counts as every language. */
  language?: string;
  /** The context that is wanted, in tokens: up to 4,096 if omitted, else up to 16,384. */
  contextTokens?: number;
  /** The device on which the model will compute. `auto`: on a hardware GPU if there is one. */
  device?: "auto" | "webgpu" | "cpu";
  /** The maximum number of bytes of memory; estimated if omitted. */
  memoryBudgetBytes?: number;
  /** The maximum number of bytes of the download. */
  maxBytes?: number;
  /** A speed that was measured on this device: better than an assumed bandwidth. */
  measured?: { model: string; tokensPerSecond: number };
}

/** One model for this device. */
export interface Recommendation {
  model: CatalogModel;
  /** Whether memory, storage and the limits of the GPU suffice, as far as they are known. */
  fits: boolean;
  /** The reasons why it does not fit. */
  obstacles: string[];
  device: "webgpu" | "cpu";
  /** Estimated tokens per second of one answer; undefined for embeddings and rerankers. */
  tokensPerSecond: number | undefined;
  /** The facts that the estimate is computed from. */
  basis: string;
}

/** The known facts about the device. */
interface Device {
  kind: "webgpu" | "cpu";
  bandwidth: { bytesPerSecond: number; basis: string };
  /** The largest part of a buffer that kernels see. */
  bindingBytes: number | undefined;
  memory: { bytes: number; basis: string };
  storageBytes: number | undefined;
}

/** Bytes per second that a GPU of a vendor is assumed to stream weights with, where nothing was measured: those of common laptops. */
const GPU_BANDWIDTH: Readonly<Record<string, number>> = {
  ...{ nvidia: 250e9, apple: 90e9, amd: 70e9, intel: 45e9 },
  ...{ qualcomm: 25e9, arm: 20e9, "img-tec": 15e9 },
};
const UNKNOWN_GPU_BANDWIDTH = 40e9;
const CPU_BANDWIDTH_OF_THREAD = 4e9;
const CPU_BANDWIDTH = 16e9;
/** Launches, attention and sampling take the rest of the time. */
const SHARE_OF_BANDWIDTH = 0.6;

/** Answers that come faster than this are read as they come; faster models are preferred only below it. */
const COMFORTABLE_TOKENS_PER_SECOND = 10;
const GIB = 2 ** 30;
const UNKNOWN_MEMORY_BYTES = 4 * GIB;
const MOST_THREADS = 8;

/**
 * The models for a task, the best one for this device first: those that fit and answer at a comfortable speed, where larger and newer ones
 * come first; then slower ones, the fastest first; then those that do not fit, the smallest first.
 *
 * @throws TypeError for an option that cannot be used: this entry does not have the class `InpageError`
 */
export async function recommendModels(options: RecommendOptions = {}): Promise<Recommendation[]> {
  const { task, language, maxBytes = Number.POSITIVE_INFINITY } = options;
  const device = await deviceOf(options);
  const wanted = catalog.filter(
    ({ tasks, languages, bytes }) =>
      (task === undefined || tasks.includes(task)) &&
      (language === undefined || languages.includes(language) || languages.includes("mul")) &&
      bytes <= maxBytes,
  );
  const judged = wanted.map((model) => judge(model, device, options));
  return judged.sort((a, b) => {
    if (a.fits !== b.fits) return a.fits ? -1 : 1;
    if (!a.fits) return a.model.memory.context4k - b.model.memory.context4k;
    const [fast, other] = [isComfortable(a), isComfortable(b)];
    if (fast !== other) return fast ? -1 : 1;
    if (fast) return worth(b.model) - worth(a.model);
    return (b.tokensPerSecond ?? 0) - (a.tokensPerSecond ?? 0);
  });
}

const isComfortable = ({ tokensPerSecond = Number.POSITIVE_INFINITY }: Recommendation) =>
  tokensPerSecond >= COMFORTABLE_TOKENS_PER_SECOND;

/** A rule of thumb: a model is about as good as one of twice its size that is a year older. */
function worth({ parameters, released }: CatalogModel): number {
  const [year = 0, month = 1] = released.split("-").map(Number);
  return parameters * 2 ** (year + month / 12 - 2024);
}

/** Bytes of weights that a token needs: of a mixture of experts, those that it uses. */
const bytesOfToken = ({ bytes, parameters, activeParameters = parameters }: CatalogModel) =>
  (bytes * activeParameters) / parameters;

function judge(model: CatalogModel, device: Device, options: RecommendOptions): Recommendation {
  const { context4k, context16k } = model.memory;
  const { contextTokens = 0 } = options;
  const needed = contextTokens > 4096 ? context16k : context4k;
  const obstacles: string[] = [];
  const { memory, storageBytes, bindingBytes, bandwidth } = device;
  if (needed > memory.bytes) {
    obstacles.push(
      `needs ${gigabytes(needed)} of memory; ${gigabytes(memory.bytes)} ${memory.basis}`,
    );
  }
  if (storageBytes !== undefined && model.bytes > storageBytes) {
    obstacles.push(
      `needs ${gigabytes(model.bytes)} of storage; ${gigabytes(storageBytes)} are free`,
    );
  }
  if (bindingBytes !== undefined && model.largestBufferBytes > bindingBytes) {
    obstacles.push(
      `has a buffer of ${gigabytes(model.largestBufferBytes)}; this GPU's kernels see ${gigabytes(bindingBytes)}`,
    );
  }
  if (contextTokens > model.contextTokens) {
    obstacles.push(`has a context of ${model.contextTokens} tokens`);
  }
  const answers = !model.tasks.some((task) => task === "embedding" || task === "rerank");
  const perSecond = (SHARE_OF_BANDWIDTH * bandwidth.bytesPerSecond) / bytesOfToken(model);
  return {
    ...{ model, fits: obstacles.length === 0, obstacles, device: device.kind },
    tokensPerSecond: answers ? Math.round(10 * perSecond) / 10 : undefined,
    basis: `${gigabytes(bytesOfToken(model))} of weights per token, ${bandwidth.basis}`,
  };
}

async function deviceOf(options: RecommendOptions): Promise<Device> {
  const { device = "auto" } = options;
  if (!["auto", "webgpu", "cpu"].includes(device)) {
    throw new TypeError(`device must be "auto", "webgpu" or "cpu", not "${device}"`);
  }
  const adapter = device === "cpu" ? undefined : await adapterOf(device === "webgpu");
  const storageBytes = await platform().freeBytes();
  const kind = adapter ? "webgpu" : "cpu";
  return {
    ...{ kind, storageBytes, memory: memoryOf(options) },
    bandwidth: measuredBandwidth(options) ?? assumedBandwidth(adapter),
    bindingBytes: adapter?.limits.maxStorageBufferBindingSize,
  };
}

async function adapterOf(takesSoftware: boolean): Promise<GPUAdapter | undefined> {
  try {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
    const isUsable = adapter && (takesSoftware || !adapter.info.isFallbackAdapter);
    return isUsable ? adapter : undefined;
  } catch {
    return undefined;
  }
}

function memoryOf({ memoryBudgetBytes }: RecommendOptions): Device["memory"] {
  if (memoryBudgetBytes !== undefined) {
    return { bytes: memoryBudgetBytes, basis: "are allowed by memoryBudgetBytes" };
  }
  const hints = pageHints();
  const small = hints && deviceBudgetBytes(hints);
  if (hints && small !== undefined) {
    return { bytes: small, basis: `are planned for a tab on ${smallSystem(hints)}` };
  }
  if (hints?.deviceMemory !== undefined) {
    const bytes = (hints.deviceMemory * GIB) / 2;
    return { bytes, basis: `are half of the ${hints.deviceMemory} GiB that the browser reports` };
  }
  return { bytes: UNKNOWN_MEMORY_BYTES, basis: "are assumed: the browser does not say" };
}

function measuredBandwidth({ measured }: RecommendOptions): Device["bandwidth"] | undefined {
  if (measured === undefined) return undefined;
  const { model: name, tokensPerSecond } = measured;
  const model = catalog.find((it) => it.name === name);
  if (model === undefined) throw new TypeError(`measured.model: the catalog has no "${name}"`);
  if (!(tokensPerSecond > 0)) {
    throw new TypeError(`measured.tokensPerSecond must be positive, not ${tokensPerSecond}`);
  }
  return {
    bytesPerSecond: (tokensPerSecond * bytesOfToken(model)) / SHARE_OF_BANDWIDTH,
    basis: `and ${tokensPerSecond} tokens per second of ${name} measured here`,
  };
}

function assumedBandwidth(adapter: GPUAdapter | undefined): Device["bandwidth"] {
  if (adapter !== undefined) {
    const { vendor } = adapter.info;
    const bytesPerSecond = GPU_BANDWIDTH[vendor] ?? UNKNOWN_GPU_BANDWIDTH;
    const basis = `${gigabytes(bytesPerSecond)}/s assumed for a GPU of ${vendor || "an unknown vendor"}`;
    return { bytesPerSecond, basis };
  }
  const threads = platform().sharesMemory ? (globalThis.navigator?.hardwareConcurrency ?? 1) : 1;
  const used = Math.min(threads, MOST_THREADS);
  const bytesPerSecond = Math.min(used * CPU_BANDWIDTH_OF_THREAD, CPU_BANDWIDTH);
  const basis = `${gigabytes(bytesPerSecond)}/s assumed for ${used} thread${used === 1 ? "" : "s"} of a CPU`;
  return { bytesPerSecond, basis };
}

const gigabytes = (bytes: number) => `${Number((bytes / 1e9).toPrecision(3))} GB`;
