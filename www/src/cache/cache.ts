//! `cache`: the models that the browser keeps for this site, listed, measured, pinned and deleted. `model_source`
//! downloads and stores them.

import {
  PINNED_FILE,
  type StoredEntry,
  cacheFolder,
  listEntries,
} from "../model_source/store/cache_layout.js";
import { shownUrl } from "../model_source/store/cache_key.js";
import type { Folder } from "../model_source/store/file_system.js";
import { removeEntry } from "../model_source/store/remove_entry.js";
import { type CachedModel, selectFiles } from "./selection.js";
import { InpageError, asInpageError } from "../api/inpage_error.js";

/** A file in the cache. A split model or a folder has several. */
export interface CachedFile {
  /** Identifies the file: its URL without credentials, signatures and fragment. */
  key: string;
  /** The URL that it came from, without the query. */
  url: string;
  /** Undefined if a server did not send it and the download is not complete. */
  sizeBytes: number | undefined;
  /** The number of bytes of the file that are stored. */
  storedBytes: number;
  /** The space that it takes, with that of a newer version in progress. */
  occupiedBytes: number;
  /** False while it downloads, or if the download broke off; the next load resumes it. */
  complete: boolean;
  pinned: boolean;
  /** The time when the download ended or, if it is not complete, began. */
  storedAt: Date;
  lastUsedAt: Date | undefined;
}

/** The part of the browser's storage that the cached models and the whole site take. */
export interface CacheSize {
  files: number;
  occupiedBytes: number;
  /** Storage of the whole site, including data other than models; undefined if the browser does not report it. */
  siteBytes: number | undefined;
  /** The storage that the browser grants the site. */
  quotaBytes: number | undefined;
}

/** The models that the browser keeps for this site; see `cache`. */
export class ModelCache {
  /** All files, the least recently used first. Empty where the browser has no storage for them. */
  async list(): Promise<CachedFile[]> {
    return (await entriesByUse()).map(describe);
  }

  async size(): Promise<CacheSize> {
    const entries = await listEntries();
    const estimate = await globalThis.navigator?.storage?.estimate?.().catch(() => undefined);
    return {
      files: entries.length,
      occupiedBytes: sum(entries),
      siteBytes: estimate?.usage,
      quotaBytes: estimate?.quota,
    };
  }

  /**
   * Keeps a model's files from `evict` and from `clear({ keepPinned: true })`.
   *
   * @throws InpageError `not_cached` if none of its files is stored
   */
  async pin(model: CachedModel): Promise<void> {
    const folders = await this.#folders(model);
    for (const folder of folders) await folder.getFileHandle(PINNED_FILE, { create: true });
  }

  /** @throws InpageError `not_cached` if none of its files is stored */
  async unpin(model: CachedModel): Promise<void> {
    const folders = await this.#folders(model);
    for (const folder of folders) await folder.removeEntry(PINNED_FILE).catch(() => {});
  }

  /**
   * Deletes a model's files, pinned or not. The next load downloads them again; an engine that has loaded them is not
   * affected.
   *
   * @returns the deleted files; none if it was not cached
   * @throws InpageError `cache_in_use` if one is being downloaded or read; the others are deleted
   */
  async delete(model: CachedModel): Promise<CachedFile[]> {
    const selects = await selected(model);
    return deleteAll((await listEntries()).filter(({ key }) => selects(key)));
  }

  /**
   * Deletes all files, or all that are not pinned.
   *
   * @throws InpageError `cache_in_use` if one is being downloaded or read; the others are deleted
   */
  async clear({ keepPinned = false }: { keepPinned?: boolean } = {}): Promise<CachedFile[]> {
    const entries = await listEntries();
    const deleted = await deleteAll(entries.filter(({ pinned }) => !(keepPinned && pinned)));
    await deleteRemains();
    return deleted;
  }

  /**
   * Deletes the least recently used files until at most `toBytes` are left. Files that are pinned or in use stay, so
   * it can end above that. Nothing is ever evicted unless this is called.
   *
   * @returns the deleted files
   */
  async evict({ toBytes }: { toBytes: number }): Promise<CachedFile[]> {
    if (!(typeof toBytes === "number" && toBytes >= 0)) {
      const message = `evict: toBytes must be a number of bytes of at least 0, not ${toBytes}`;
      throw InpageError.local("invalid_option", message);
    }
    const entries = await entriesByUse();
    let occupiedBytes = sum(entries);
    const deleted: CachedFile[] = [];
    for (const entry of entries) {
      if (occupiedBytes <= toBytes) break;
      if (entry.pinned || !(await removeEntry(entry.name))) continue;
      occupiedBytes -= entry.occupiedBytes;
      deleted.push(describe(entry));
    }
    return deleted;
  }

  /**
   * Asks the browser not to delete the site's storage when the disk is full. Some browsers ask the user, others decide
   * by themselves.
   *
   * @returns whether the storage is persistent now
   */
  async persist(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persist?.().catch(() => false)) ?? false;
  }

  /** Whether the browser has promised not to delete the site's storage. */
  async persisted(): Promise<boolean> {
    return (await globalThis.navigator?.storage?.persisted?.().catch(() => false)) ?? false;
  }

  async #folders(model: CachedModel): Promise<Folder[]> {
    const selects = await selected(model);
    const entries = (await listEntries()).filter(({ key }) => selects(key));
    const folder = await cacheFolder();
    if (folder === undefined || entries.length === 0) {
      throw InpageError.local(
        "not_cached",
        `no file of ${nameOf(model)} is cached: load it first; cache.list() says what is there`,
      );
    }
    return Promise.all(entries.map(({ name }) => folder.getDirectoryHandle(name)));
  }
}

/** @throws InpageError `invalid_option` if `model` does not name a URL or a model of the catalog */
async function selected(model: CachedModel): Promise<(key: string) => boolean> {
  try {
    return await selectFiles(model);
  } catch (error) {
    throw asInpageError(error);
  }
}

/** The models that the browser keeps for this site. */
export const cache = new ModelCache();

function describe(entry: StoredEntry): CachedFile {
  const { key, url, current, next, occupiedBytes, pinned, usedAtMs } = entry;
  const shown = current ?? next;
  return {
    key,
    url,
    sizeBytes: shown?.note.sizeBytes,
    storedBytes: shown?.storedBytes ?? 0,
    occupiedBytes,
    complete: current !== undefined,
    pinned,
    storedAt: new Date(shown?.note.storedAtMs ?? 0),
    lastUsedAt: usedAtMs === undefined ? undefined : new Date(usedAtMs),
  };
}

async function entriesByUse(): Promise<StoredEntry[]> {
  const usedAt = ({ usedAtMs, current, next }: StoredEntry) =>
    usedAtMs ?? (current ?? next)?.note.storedAtMs ?? 0;
  return (await listEntries()).sort((a, b) => usedAt(a) - usedAt(b));
}

const sum = (entries: StoredEntry[]) =>
  entries.reduce((total, { occupiedBytes }) => total + occupiedBytes, 0);

const nameOf = (model: CachedModel) =>
  typeof model === "string" || model instanceof URL
    ? shownUrl(model)
    : shownUrl([model.folder ?? model.url ?? []].flat()[0] ?? "");

async function deleteAll(entries: StoredEntry[]): Promise<CachedFile[]> {
  const deleted: CachedFile[] = [];
  const kept: string[] = [];
  for (const entry of entries) {
    if (await removeEntry(entry.name)) deleted.push(describe(entry));
    else kept.push(entry.url);
  }
  if (kept.length === 0) return deleted;
  throw InpageError.local(
    "cache_in_use",
    `${kept.join(" and ")} is being downloaded or loaded, perhaps in another tab, and was not deleted: try again when the load has ended or was aborted`,
  );
}

/** Deletes the folders that hold no version of a file, such as those that note that a server lacks one. */
async function deleteRemains(): Promise<void> {
  const folder = await cacheFolder();
  if (folder === undefined) return;
  const listed = new Set((await listEntries()).map(({ name }) => name));
  const names: string[] = [];
  for await (const name of folder.keys()) if (!listed.has(name)) names.push(name);
  for (const name of names) await removeEntry(name);
}
