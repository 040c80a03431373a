//! Remembers loads that ended with their tab: each load has a mark of its own in the site's `localStorage` while it runs, and a
//! mark whose lock no tab holds is a crash.

import type { ModelLocation } from "../exchange/protocol.js";
import { identityOf } from "../cache/selection.js";
import type { EngineOptions } from "../options/engine_options.js";
import { resolveModel } from "../options/model.js";

/** Loads of a model on a device that ended with their tab in the last week, since the last one that succeeded as the app wanted it. */
export interface CrashedLoad {
  /** The number of these loads. */
  loads: number;
  /** The time when the last one was begun, in milliseconds since 1970. */
  atMs: number;
}

/** Crashes of a model, and whether it has been loaded with less memory since. */
export interface RememberedCrash extends CrashedLoad {
  loadedSince: boolean;
}

/** One load, in an item of its own, so that tabs do not overwrite each other's. */
interface Mark {
  /** The model and the device. */
  key: string;
  /** The time when it was begun, in milliseconds since 1970. */
  atMs: number;
  /** True if the load crashed, and a later one succeeded with less memory. */
  loadedSince?: boolean;
}

/** Marks have the names of the locks that their tabs hold while they load. */
const PREFIX = "inpage-load ";
/** The oldest are forgotten. */
const MOST_MARKS = 32;
/** A crash is forgotten after a week: tabs end by other causes too, and a model that is not tried cannot succeed. */
const REMEMBERED_MS = 7 * 24 * 3_600_000;

/** The key of a model on a device; undefined for local files and outside of a page. */
function keyOf(location: ModelLocation, device: EngineOptions["device"]): string | undefined {
  if (location.kind !== "url" || globalThis.document === undefined) return undefined;
  return JSON.stringify([identityOf(location), device ?? "auto"]);
}

/** The marks of all tabs, by the names of their locks; none where the page has no storage. */
function marks(): [name: string, mark: Mark][] {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
    return names.flatMap((name): [string, Mark][] => {
      const mark = parsed(localStorage.getItem(name));
      return mark ? [[name, mark]] : [];
    });
  } catch {
    return [];
  }
}

function parsed(text: string | null): Mark | undefined {
  try {
    const mark = JSON.parse(text ?? "null");
    return typeof mark?.key === "string" && typeof mark.atMs === "number" ? mark : undefined;
  } catch {
    return undefined;
  }
}

function write(name: string, mark: Mark): void {
  try {
    localStorage.setItem(name, JSON.stringify(mark));
  } catch {
    // The page has no storage, or it is full: nothing is remembered.
  }
}

function remove(name: string): void {
  try {
    localStorage.removeItem(name);
  } catch {
    // The page has no storage any more.
  }
}

/** Whether any load of one model is marked, so that there is something to ask. */
export const hasMarks = ({ models }: EngineOptions) =>
  models === undefined && globalThis.document !== undefined && marks().length > 0;

/** The marks of loads of one model that ended with their tab. */
async function crashedMarks(key: string): Promise<[name: string, mark: Mark][]> {
  // Before the locks: a load that begins later is not taken for a crash.
  const found = marks().filter(([, mark]) => mark.key === key);
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  const names = new Set(held.map(({ name }) => name));
  const remaining = new Set(marks().map(([name]) => name));
  return found.filter(([name]) => !names.has(name) && remaining.has(name));
}

/**
 * Marks a load of a model until `loaded` settles or the page is left. A load that succeeds clears the model's earlier crashes; one
 * with less memory than the app wanted (`isReduced`) does not, so that the next load does not crash again.
 */
export function markLoad(
  location: ModelLocation,
  device: EngineOptions["device"],
  isReduced: boolean,
  loaded: Promise<void>,
): void {
  const key = keyOf(location, device);
  const locks = globalThis.navigator?.locks;
  if (key === undefined || locks === undefined) return;
  const name = `${PREFIX}${Math.random()}`;
  const forget = () => remove(name);
  void locks
    .request(name, async () => {
      const byAge = marks().sort(([, a], [, b]) => a.atMs - b.atMs);
      for (const [oldest] of byAge.slice(0, 1 - MOST_MARKS)) remove(oldest);
      write(name, { key, atMs: Date.now() });
      addEventListener("pagehide", forget, { once: true });
      const isLoaded = await loaded.then(
        () => true,
        () => false,
      );
      removeEventListener("pagehide", forget);
      forget();
      if (!isLoaded) return;
      for (const [crashed, mark] of await crashedMarks(key)) {
        if (isReduced) write(crashed, { ...mark, loadedSince: true });
        else remove(crashed);
      }
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
}: Pick<EngineOptions, "model" | "hub" | "device">): Promise<RememberedCrash | undefined> {
  const key = keyOf(resolveModel(model, hub).location, device);
  if (key === undefined) return undefined;
  const crashed = await crashedMarks(key);
  const isOld = ([, { atMs }]: [string, Mark]) => Date.now() - atMs > REMEMBERED_MS;
  for (const [name] of crashed.filter(isOld)) remove(name);
  const recent = crashed.filter((it) => !isOld(it)).map(([, mark]) => mark);
  if (recent.length === 0) return undefined;
  return {
    loads: recent.length,
    atMs: Math.max(...recent.map(({ atMs }) => atMs)),
    loadedSince: recent.every((mark) => mark.loadedSince === true),
  };
}
