//! Remembers loads that ended with their tab: a load is marked in the site's `localStorage` while it runs, and a mark that no tab
//! holds any more is a crash.

import type { ModelLocation } from "../exchange/protocol.js";
import { identityOf } from "../cache/selection.js";
import type { EngineOptions } from "../options/engine_options.js";
import { resolveModel } from "../options/model.js";

/** Loads of a model on a device that ended with their tab, since the last one that succeeded. */
export interface CrashedLoad {
  /** The number of failed loads, one after the other. */
  loads: number;
  /** The time when the last one was begun, in milliseconds since 1970. */
  atMs: number;
}

interface Mark {
  /** The lock that the tab holds while it loads. */
  lock?: string | undefined;
  atMs: number;
  crashes: number;
}

const STORED = "inpage-loads";
/** The oldest are forgotten. */
const MOST_MARKS = 32;
/** A crash is forgotten after a week: tabs end by other causes too, and a model that is not tried cannot succeed. */
const REMEMBERED_MS = 7 * 24 * 3_600_000;

/** The key of a model on a device; undefined for local files and outside of a page. */
function keyOf(location: ModelLocation, device: EngineOptions["device"]): string | undefined {
  if (location.kind !== "url" || globalThis.document === undefined) return undefined;
  return JSON.stringify([identityOf(location), device ?? "auto"]);
}

function read(): Record<string, Mark> {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** Whether any load of one model is marked, so that there is something to ask. */
export const hasMarks = ({ models }: EngineOptions) =>
  models === undefined && globalThis.document !== undefined && Object.keys(read()).length > 0;

function change(key: string, mark: Mark | undefined): void {
  const { [key]: _, ...others } = read();
  const entries = Object.entries(others).slice(mark ? 1 - MOST_MARKS : -MOST_MARKS);
  if (mark) entries.push([key, mark]);
  try {
    localStorage.setItem(STORED, JSON.stringify(Object.fromEntries(entries)));
  } catch {
    // The page has no storage, or it is full: nothing is remembered.
  }
}

/** Marks a load of a model until `loaded` settles or the page is left. A load that succeeds clears its earlier crashes. */
export function markLoad(
  location: ModelLocation,
  device: EngineOptions["device"],
  loaded: Promise<void>,
): void {
  const key = keyOf(location, device);
  const locks = globalThis.navigator?.locks;
  if (key === undefined || locks === undefined) return;
  const { crashes = 0, atMs = 0 } = read()[key] ?? {};
  const lock = `inpage-load ${Math.random()}`;
  const remains = () => change(key, crashes > 0 ? { atMs, crashes } : undefined);
  void locks
    .request(lock, async () => {
      change(key, { lock, atMs: Date.now(), crashes });
      addEventListener("pagehide", remains, { once: true });
      await loaded.then(() => change(key, undefined), remains);
      removeEventListener("pagehide", remains);
    })
    .catch(() => {});
}

/**
 * The loads of a model on a device that ended with their tab. Tabs end by other causes too, so this is a hint.
 *
 * @throws TypeError for options that cannot be used
 */
export async function crashedLoad({
  model,
  hub,
  device,
}: Pick<EngineOptions, "model" | "hub" | "device">): Promise<CrashedLoad | undefined> {
  const key = keyOf(resolveModel(model, hub).location, device);
  const mark = key === undefined ? undefined : read()[key];
  if (key === undefined || mark === undefined) return undefined;
  if (Date.now() - mark.atMs > REMEMBERED_MS) {
    change(key, undefined);
    return undefined;
  }
  let { crashes } = mark;
  const { atMs, lock } = mark;
  if (lock !== undefined) {
    const { held = [], pending = [] } = (await navigator.locks?.query()) ?? {};
    const isHeld = [...held, ...pending].some(({ name }) => name === lock);
    // Another tab loads it now.
    if (!isHeld && read()[key]?.lock === lock) {
      crashes += 1;
      change(key, { atMs, crashes });
    }
  }
  return crashes > 0 ? { loads: crashes, atMs } : undefined;
}
