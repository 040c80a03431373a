//! The monitor of a creation: the events `downloadprogress`, from 0 to 1.

import type { EngineOptions } from "../options/engine_options.js";

type Report = NonNullable<EngineOptions["onProgress"]>;

/** A target of `downloadprogress` events, whose `loaded` is a part of 1. */
export class CreateMonitor extends EventTarget {
  ondownloadprogress: ((event: Event) => void) | null = null;
}

/** Parts are rounded to multiples of this, so that sizes of models do not show. */
const STEP = 1 / 0x10000;

/** Reports the progress of a load to `monitor`. Each event has a larger part than the one before it. */
export function downloadMonitor(monitor: (target: CreateMonitor) => void): {
  report: Report;
  /** Reports that everything is loaded. */
  end(): void;
  /** Reports nothing from now on. */
  close(): void;
} {
  const target = new CreateMonitor();
  monitor(target);
  let [last, isClosed] = [-1, false];
  const tell = (part: number) => {
    const loaded = Math.floor(Math.min(part, 1) / STEP) * STEP;
    if (isClosed || loaded <= last) return;
    last = loaded;
    const event = progressEvent(loaded);
    target.dispatchEvent(event);
    target.ondownloadprogress?.(event);
  };
  return {
    report({ phase, loadedBytes, totalBytes }) {
      if (phase !== "download") return;
      tell(0);
      // `end` reports the end of the load.
      if (totalBytes !== undefined && loadedBytes < totalBytes) tell(loadedBytes / totalBytes);
    },
    end() {
      tell(0);
      tell(1);
    },
    close() {
      isClosed = true;
    },
  };
}

/** Not every program has the class. */
function progressEvent(loaded: number): Event {
  const members = { loaded, total: 1, lengthComputable: true };
  return globalThis.ProgressEvent === undefined
    ? Object.assign(new Event("downloadprogress"), members)
    : new ProgressEvent("downloadprogress", members);
}
