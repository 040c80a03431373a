//! One tab at a time checks, downloads or repairs a file. The others see its progress, and take over if it is gone,
//! frozen or stuck. The caller does the work of a turn.
//!
//! The turn of a tab is a Web Lock and a heartbeat. The lock is released by the browser when a tab ends; the heartbeat
//! shows that it is not frozen. A tab that takes over cannot write the files that the frozen one holds open, so it
//! copies their chunks to a version of its own.

import { locks } from "../../platform.js";
import type { Clock } from "./clock.js";

const CHANNEL = "inpage-downloads";
/** The tab whose turn it is shows this often that it is alive. */
const HEARTBEAT_MS = 1000;
/**
 * After this many missing heartbeats the tab counts as frozen. A random number is added, so that only one tab takes over.
 */
const SILENT_BEATS = 15;
/**
 * After this many heartbeats without a new byte the tab counts as stuck: longer than a stall and the longest wait of a
 * transfer.
 */
const STUCK_BEATS = 100;

/** The progress that the tab whose turn it is reports. */
interface Beat {
  name: string;
  loadedBytes: number;
  totalBytes: number | undefined;
}

export interface Turn {
  /** Aborts when another tab has taken over: from then on, nothing may be written. */
  lost: AbortSignal;
  report(loadedBytes: number, totalBytes: number | undefined): void;
}

export interface Waiting {
  clock: Clock;
  signal: AbortSignal;
  /** The progress of the tab whose turn it is. */
  onWaiting: (loadedBytes: number, totalBytes: number | undefined) => void;
}

/** Another tab has taken over. */
class TurnLost extends Error {}

/** Runs `work` while no other tab does so for the same lock; again, if another tab has taken over in the meantime. */
export async function inTurn<T>(
  lock: string,
  waiting: Waiting,
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await oneTurn(lock, waiting, work);
    } catch (error) {
      waiting.signal.throwIfAborted();
      if (!(error instanceof TurnLost)) throw error;
    }
  }
}

async function oneTurn<T>(
  lock: string,
  { clock, signal, onWaiting }: Waiting,
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  const channel = new BroadcastChannel(CHANNEL);
  const lost = new AbortController();
  const over = new AbortController();
  const granted = new AbortController();
  const queue = new AbortController();
  const beat: Beat = { name: lock, loadedBytes: 0, totalBytes: undefined };
  let result: Promise<T> | undefined;
  let isDone = false;

  const run = async (): Promise<T> => {
    granted.abort();
    void everyBeat(clock, over.signal, () => {
      channel.postMessage(beat);
      return false;
    });
    const report = (loadedBytes: number, totalBytes: number | undefined) => {
      Object.assign(beat, { loadedBytes, totalBytes });
    };
    result = work({ lost: lost.signal, report });
    try {
      return await result;
    } finally {
      isDone = true;
    }
  };

  let silent = 0;
  let stuck = 0;
  let seenBytes = -1;
  channel.onmessage = ({ data }: MessageEvent<Beat>) => {
    if (data.name !== lock || granted.signal.aborted) return;
    silent = 0;
    if (data.loadedBytes !== seenBytes) stuck = 0;
    seenBytes = data.loadedBytes;
    onWaiting(data.loadedBytes, data.totalBytes);
  };
  const patience = SILENT_BEATS + Math.floor(clock.random() * 5);
  // Beats are counted, because time passes while this tab is frozen itself.
  const isGone = () => ++silent > patience || ++stuck > STUCK_BEATS;

  try {
    const queued = locks().request(lock, { signal: AbortSignal.any([signal, queue.signal]) }, run);
    queued.catch(() => {});
    const stopWatching = AbortSignal.any([signal, granted.signal]);
    const mustTakeOver = await Promise.race([
      queued.then(
        () => false,
        () => false,
      ),
      everyBeat(clock, stopWatching, isGone),
    ]);
    signal.throwIfAborted();
    if (!mustTakeOver || granted.signal.aborted) return await queued;
    queue.abort();
    return await locks().request(lock, { steal: true }, run);
  } catch (error) {
    signal.throwIfAborted();
    // If the lock is stolen, the request ends before the work does, or even before it begins.
    const isStolen = error instanceof DOMException && error.name === "AbortError" && !isDone;
    if (!isStolen) throw error;
    if (result === undefined) throw new TurnLost();
    lost.abort(new TurnLost(`another tab has taken over ${lock}`));
    return await result;
  } finally {
    over.abort();
    granted.abort();
    channel.close();
  }
}

/** Calls `beat` at every heartbeat, until it gives true (then true) or the signal aborts (then false). */
async function everyBeat(clock: Clock, signal: AbortSignal, beat: () => boolean): Promise<boolean> {
  while (!signal.aborted) {
    if (beat()) return true;
    await clock.sleep(HEARTBEAT_MS, signal).catch(() => {});
  }
  return false;
}
