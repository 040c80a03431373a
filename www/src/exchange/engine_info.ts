//! The report of `engine.info()`.

import type { EngineInfo as EngineState, KvFormat, LoadReport } from "../generated/types.js";

/** The store of the model's files; the members are missing for local files. */
export interface ModelStorage {
  /**
   * `opfs`, and `disk` outside of a browser: for the next visit. `cache`: the same, in the Cache API, because the browser gives
   * this page no file system. `cross-origin`: the browser keeps it for several sites. `memory`: downloaded, and kept only while the
   * model loads. `none`: read by range requests.
   */
  storage?: "opfs" | "disk" | "cache" | "cross-origin" | "memory" | "none";
  /** The reason why the files are not kept for the next visit, if the app wanted them to be. */
  storageReason?: string;
}

/** The way in which the engine is run. */
export interface EngineSharing {
  /** Other tabs of the site may use the same engine. */
  shared?: boolean;
}

/** Whether workers of the engine can share memory, which the CPU device needs for more than one thread. */
export interface EngineIsolation {
  /**
   * `page`: the page is cross-origin isolated. `frame`: the engine runs in a hidden frame that the service worker isolates.
   * `none`: there is one thread. Missing outside of a browser.
   */
  isolation?: "page" | "frame" | "none";
  /** The reason why there is no isolated frame, where `isolation` is `none`. */
  isolationReason?: string;
}

/** The adjustments of a load where memory is short. */
export interface EngineFit {
  /** Loads of the model on this device ended with their tab: probably the system ended it for its memory. */
  previousLoadCrashed?: {
    /** The number of loads that ended with their tab in the last week, since the last one that succeeded as the app wanted it. */
    loads: number;
    /** The time when the last one was begun, in milliseconds since 1970. */
    atMs: number;
  };
  /** The changes that made the load possible. */
  fitted?: {
    /** The KV cache is in this format instead of f16. */
    kvFormat?: KvFormat;
    /** The context is this long instead of 4,096 tokens. */
    contextTokens?: number;
    /** 0: it is `model`; otherwise which one of `fallbackModels` it is, counted from 1. */
    fallback: number;
    /** The reason why the model was not loaded as the app wanted it. */
    reason: string;
  };
}

/** The report of one model. */
export type ModelInfo = Partial<EngineState & LoadReport> &
  ModelStorage &
  EngineIsolation &
  EngineFit &
  EngineSharing & {
    /** Memory that counts towards `memoryBudgetBytes`; only of a loaded model of an engine with several. */
    memoryBytes?: number;
  };

/** The report of an engine with several models has the other members in `models`. */
export interface ModelInfos {
  /** The models that are loaded or being loaded, by their names. */
  models?: Record<string, ModelInfo>;
}

/** While the model loads, the members of the load report are missing; if the engine has failed, all but `shared` are. */
export type EngineInfo = ModelInfo & ModelInfos;
