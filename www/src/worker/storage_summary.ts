//! Sums up where the files of the model are kept, for `engine.info()`.

import type { ModelStorage } from "../exchange/engine_info.js";
import type { ModelLocation } from "../exchange/protocol.js";
import type { StorageReport } from "../model_source/transfer/url_file.js";
import { platform } from "../platform.js";

/** The kinds of storage, from best to worst for the next visit. */
const KINDS = ["opfs", "disk", "cache", "cross-origin", "memory", "none"] as const;

export class StorageSummary {
  /** The reports by URL. A file may be reported twice, first as kept and then as not. */
  #reports = new Map<string, StorageReport>();
  /** Assumed of a download until it is reported: it is stored as it arrives. */
  #expected: ModelStorage = {};

  expect(model: ModelLocation): void {
    if (model.kind !== "url" || !model.cache) return;
    const { cacheKind } = platform();
    const hasFileSystem = cacheKind !== "opfs" || "getDirectory" in (navigator.storage ?? {});
    if (hasFileSystem) this.#expected = { storage: cacheKind };
  }

  add(report: StorageReport): void {
    this.#reports.set(report.url, report);
  }

  /** The report of the file with the worst storage; empty for local files. */
  get info(): ModelStorage {
    const reports = [...this.#reports.values()];
    for (const kind of KINDS.toReversed()) {
      const found = reports.find(({ storage }) => storage === kind);
      if (found === undefined) continue;
      const { storage, reason } = found;
      return reason === undefined ? { storage } : { storage, storageReason: reason };
    }
    return this.#expected;
  }
}
