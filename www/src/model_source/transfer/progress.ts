//! Adds up the progress of all downloads of a model and measures their rate. The caller decides when to report it.

import type { LoadProgress } from "../../exchange/protocol.js";
import type { OnBytes } from "../../byte_source.js";

/** The rate is measured over this time: short enough to be current, long enough to be steady. */
const WINDOW_MS = 5000;

/** A shorter time would measure the rate of single packets. */
const SHORTEST_MS = 500;

/** The least time between two samples. Chunks arrive more often. */
const SAMPLE_MS = 50;

interface Download {
  loadedBytes: number;
  totalBytes: number | undefined;
  isWaiting: boolean;
}

export class DownloadProgress {
  #report: (progress: LoadProgress) => void;
  #nowMs: () => number;
  #downloads = new Map<string, Download>();
  /** Bytes that came from the network since the start; not those of earlier visits. */
  #arrivedBytes = 0;
  #samples: { atMs: number; arrivedBytes: number }[] = [];

  constructor(report: (progress: LoadProgress) => void, nowMs = () => performance.now()) {
    this.#report = report;
    this.#nowMs = nowMs;
  }

  /** Takes the progress of one file, by its cache key. */
  of(key: string): OnBytes {
    return (loadedBytes, totalBytes, isWaiting = false) => {
      // The first report of a resumed download begins with what was stored.
      const before = this.#downloads.get(key)?.loadedBytes ?? loadedBytes;
      this.#arrivedBytes += Math.max(0, loadedBytes - before);
      this.#downloads.set(key, { loadedBytes, totalBytes, isWaiting });
      this.#sample();
      this.#report(this.#sum());
    };
  }

  #sample(): void {
    const atMs = this.#nowMs();
    const last = this.#samples.at(-1);
    if (last !== undefined && atMs - last.atMs < SAMPLE_MS) return;
    this.#samples.push({ atMs, arrivedBytes: this.#arrivedBytes });
    // The last sample before the window is kept: it is the window's beginning.
    while ((this.#samples[1]?.atMs ?? atMs) <= atMs - WINDOW_MS) this.#samples.shift();
  }

  #sum(): LoadProgress {
    let loadedBytes = 0;
    let totalBytes: number | undefined = 0;
    let phase: LoadProgress["phase"] = "download";
    for (const download of this.#downloads.values()) {
      loadedBytes += download.loadedBytes;
      // The total is unknown while that of any file is.
      totalBytes =
        download.totalBytes === undefined || totalBytes === undefined
          ? undefined
          : totalBytes + download.totalBytes;
      if (download.isWaiting) phase = "waiting";
    }
    const bytesPerSecond = this.#rate();
    const remainingMs =
      bytesPerSecond && totalBytes !== undefined
        ? ((totalBytes - loadedBytes) / bytesPerSecond) * 1000
        : undefined;
    return { phase, loadedBytes, totalBytes, bytesPerSecond, remainingMs };
  }

  #rate(): number | undefined {
    const [first] = this.#samples;
    if (first === undefined) return undefined;
    const tookMs = this.#nowMs() - first.atMs;
    if (tookMs < SHORTEST_MS) return undefined;
    return ((this.#arrivedBytes - first.arrivedBytes) / tookMs) * 1000;
  }
}
