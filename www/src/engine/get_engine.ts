//! `getEngine`: one engine per page for equal options, however often a program asks for it. `engine.ts` creates engines and
//! `single.ts` shares their models between tabs.

import { orAborted } from "../exchange/abort.js";
import type { LoadProgress } from "../exchange/protocol.js";
import { type Engine, createEngine } from "./engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import { optionsKey } from "../options/options_key.js";
import { replacesFailedEngine } from "../api/upstream.js";

/** An engine that callers of `getEngine` share. */
interface Shared {
  readonly engine: Promise<Engine>;
  /** Settles as the last attempt to load does. */
  loaded: Promise<void>;
  hasFailed: boolean;
  /** A caller has the engine, so it is kept although its model could not be loaded: later requests try again. */
  isHeld: boolean;
  /** The listeners of all callers. */
  readonly listeners: Set<(progress: LoadProgress) => void>;
  progress: LoadProgress | undefined;
}

/** A `getEngine` whose engines `create` makes. */
export function engineGetter(
  create: typeof createEngine,
): (options?: EngineOptions) => Promise<Engine> {
  const all = new Map<string, Shared>();

  function start(key: string, options: EngineOptions): Shared {
    const { signal: _signal, onProgress: _onProgress, ...rest } = options;
    const onProgress = (progress: LoadProgress) => {
      shared.progress = progress;
      for (const listener of shared.listeners) listener(progress);
    };
    const engine = create({ ...rest, background: true, onProgress });
    const loaded = engine.then(({ ready }) => ready);
    const shared: Shared = {
      ...{ engine, loaded, hasFailed: false, isHeld: false },
      ...{ listeners: new Set(), progress: undefined },
    };
    const forget = () => {
      if (all.get(key) === shared) all.delete(key);
    };
    all.set(key, shared);
    engine.then(
      ({ disposed }) => disposed.addEventListener("abort", forget, { once: true }),
      forget,
    );
    loaded
      .catch(async () => {
        shared.hasFailed = true;
        if (shared.isHeld) return;
        forget();
        await (await engine).dispose();
      })
      .catch(() => {});
    return shared;
  }

  return async (options = {}) => {
    const { background, onProgress, signal, upstream } = options;
    signal?.throwIfAborted();
    const key = optionsKey(options);
    const shared = all.get(key) ?? start(key, options);
    if (onProgress) {
      shared.listeners.add(onProgress);
      signal?.addEventListener("abort", () => shared.listeners.delete(onProgress), { once: true });
      if (shared.progress) onProgress(shared.progress);
    }
    const outlivesFailure = upstream !== undefined && replacesFailedEngine(upstream);
    if (background || outlivesFailure) shared.isHeld = true;
    const engine = await orAborted(shared.engine, signal);
    if (background) return engine;
    if (shared.hasFailed) {
      shared.hasFailed = false;
      shared.loaded = engine.reload();
      shared.loaded.catch(() => {
        shared.hasFailed = true;
      });
    }
    try {
      await orAborted(shared.loaded, signal);
    } catch (error) {
      if (!outlivesFailure || signal?.aborted) throw error;
    }
    shared.isHeld = true;
    return engine;
  };
}

/**
 * The engine of this page for these options: equal options get the same engine, also while it loads and however often they
 * are asked for, so components may call this on every mount. It lives until `dispose()` is called on it; then, and after a
 * load that failed, the next call creates another one.
 *
 * `signal`, `background` and `onProgress` are those of the call: a `signal` that aborts ends the caller's wait and its
 * reports of progress, and the load goes on.
 *
 * @throws InpageError as `createEngine` does
 * @throws DOMException named `AbortError` if `signal` aborts first
 */
export const getEngine: ReturnType<typeof engineGetter> =
  /* @__PURE__ */ engineGetter(createEngine);
