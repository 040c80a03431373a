//! Transfers a file, or a range of it, over as many requests as it takes. Temporary failures are retried, each time from
//! where the last attempt ended. The sink stores the bytes; `http.ts` checks the answers.

import { messageOf } from "../../exchange/error_response.js";
import type { Clock } from "./clock.js";
import {
  ChangedFile,
  NoRanges,
  SlowAnswer,
  TransientFailure,
  UntrustedRange,
  likelyCause,
} from "../store/failure.js";
import {
  type Answer,
  type FetchFile,
  ask,
  looksLikeWebPage,
  rangeValidator,
  webPage,
} from "./http.js";
import { type FileVersion, joinable } from "../store/version.js";

/** A request fails if no byte arrives for this time. */
export const STALL_MS = 20_000;
/**
 * The number of bytes that counts as progress. A connection that breaks off before that has failed again, however many bytes it has sent. Less than a
 * chunk of the cache: a slow connection breaks off more often.
 */
const PROGRESS_BYTES = 64 * 1024;
/** A server whose answer makes no progress for this time is too slow: below about 2 kB/s. */
export const SLOW_MS = 30_000;
/**
 * The interval at which the rate is looked at. Looks are counted, and only while bytes are awaited: neither the sleep of a computer or tab, nor a
 * pause, nor a slow storage makes a server slow.
 */
const LOOK_MS = 5000;
/** The wait before the second attempt; it doubles with each further one. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 16_000;
/** The longest wait that a server can ask for. A longer one is cut to this time. */
const LONGEST_RETRY_AFTER_MS = 60_000;
/** This many attempts without progress end the transfer. */
const ATTEMPTS = 6;
/** The same if no answer has ever come: the URL may be wrong, or the browser may forbid the request. */
const UNREACHED_ATTEMPTS = 4;

/** The place for the bytes of a transfer. */
export interface Sink {
  /** The offset of the next byte. */
  readonly position: number;
  /** The version of the bytes before `position`, if there are any. */
  readonly version: FileVersion | undefined;
  /**
   * An answer begins at `position`, or at 0: then the bytes up to `position` come once more, perhaps of another version.
   *
   * @throws ChangedFile if the sink cannot take it
   */
  begin(startBytes: number, version: FileVersion): void;
  accept(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}

export interface Transfer {
  url: string;
  fetchFile: FetchFile;
  clock: Clock;
  signal: AbortSignal;
  /** The end of a range, whose start is the sink's position; undefined for a file to its end. */
  endBytes?: number;
  /** Takes the file from its start if it cannot be read by ranges; without it, that is an error. */
  whole?: Sink;
  /** Another server has the file: one that is too slow is given up at once. */
  hasMirror?: boolean;
}

/**
 * Resolves when the sink has all bytes, with the sink: `job.whole` if the file could not be read by ranges.
 *
 * @throws NoRanges if it would need `job.whole`; TypeError naming the URL, how often it was requested, what arrived and the likely cause
 */
export async function transfer(job: Transfer, sink: Sink): Promise<Sink> {
  const requests = new Requests(job, sink);
  const { clock, signal } = job;
  let failures = 0;
  // The end of the last reported range.
  let furthest = sink.position;
  const hasProgressed = () => {
    const { position } = requests.sink;
    if (position < furthest + PROGRESS_BYTES) return false;
    furthest = position;
    failures = 0;
    return true;
  };
  for (let attempt = 1; ; attempt++) {
    try {
      if (await requests.next()) return requests.sink;
      if (!hasProgressed()) {
        throw new TransientFailure(`${job.url} sends only a few bytes of what is requested`);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof TransientFailure)) throw error;
      hasProgressed();
      failures += 1;
      const isOffline = requests.isUnreached && globalThis.navigator?.onLine === false;
      const isLast = failures >= (requests.isUnreached ? UNREACHED_ATTEMPTS : ATTEMPTS);
      if (error instanceof UntrustedRange && requests.canBeWhole) {
        // Waiting would not help.
        requests.askWhole();
        continue;
      }
      if (error instanceof UntrustedRange && job.endBytes !== undefined)
        throw new NoRanges(error.message);
      const isTooSlow = error instanceof SlowAnswer && job.hasMirror === true;
      if (isOffline || isLast || isTooSlow || error instanceof UntrustedRange) {
        throw lastFailure(job, requests.sink, error, attempt);
      }
      await clock.sleep(waitMs(failures, error, clock), signal);
    }
  }
}

/** The requests of a transfer, and what was learned from their answers. */
class Requests {
  #job: Transfer;
  sink: Sink;
  #endBytes: number | undefined;
  /** False after an answer to a range request that cannot be trusted. */
  #trustsRanges = true;
  /** False if the next request must start at 0, because the bytes may be of another version. */
  #resumes = true;
  /** `If-Range` makes a request to another origin need that server's permission. */
  #sendsIfRange = true;
  /** True until the first answer. */
  isUnreached = true;

  constructor(job: Transfer, sink: Sink) {
    this.#job = job;
    this.sink = sink;
    this.#endBytes = job.endBytes;
  }

  /** True if the file can be requested without a range. */
  get canBeWhole(): boolean {
    return this.#trustsRanges && (this.#endBytes === undefined || this.#job.whole !== undefined);
  }

  askWhole(): void {
    this.#trustsRanges = false;
    this.#takeWhole();
  }

  /** Sends one request; true if the sink has all bytes now. */
  async next(): Promise<boolean> {
    const { url, fetchFile } = this.#job;
    const attempt = new AbortController();
    const signal = AbortSignal.any([this.#job.signal, attempt.signal]);
    const { version, position } = this.sink;
    const isPart = this.#endBytes !== undefined;
    // The rest of a file without validators could belong to any version.
    const isResumable = version !== undefined && joinable(version, version);
    const startBytes = isPart || (this.#resumes && isResumable) ? position : 0;
    const range = this.#trustsRanges ? { startBytes, endBytes: this.#endBytes } : undefined;
    const hasCondition = range && startBytes > 0 && !isPart && this.#sendsIfRange;
    const ifRange = hasCondition && version ? rangeValidator(version) : undefined;
    try {
      const question = { url, fetchFile, range, ifRange, signal };
      const answer = await this.#unstalled(ask(question), attempt);
      this.isUnreached = false;
      return this.#begin(answer) && (await this.#receive(answer, attempt));
    } catch (error) {
      const isUnreached = error instanceof TransientFailure && error.isUnreached;
      if (isUnreached && ifRange !== undefined) this.#sendsIfRange = false;
      if (error instanceof TransientFailure && !isUnreached) this.isUnreached = false;
      throw error;
    } finally {
      // Frees the connection if the answer was not read to its end.
      attempt.abort();
    }
  }

  /** False if the answer cannot be used, and the file must be requested from its start. */
  #begin({ startBytes, version, isRange }: Answer): boolean {
    const { url, whole } = this.#job;
    if (this.#endBytes !== undefined) {
      const before = this.sink.version;
      if (isRange && before !== undefined && !joinable(before, version)) throw changed(url);
      // Without validators, two parts could belong to two versions.
      if (isRange && whole !== undefined && !joinable(version, version)) {
        throw new UntrustedRange(`${url} sends neither a strong ETag nor Last-Modified`);
      }
      if (!isRange && whole === undefined)
        throw new NoRanges(`${url} does not support range requests`);
      if (!isRange) this.#takeWhole();
    }
    const { sink } = this;
    const before = sink.version;
    if (this.#endBytes === undefined && startBytes > 0 && !(before && joinable(before, version))) {
      this.#resumes = false;
      return false;
    }
    sink.begin(startBytes, version);
    this.#resumes = true;
    return true;
  }

  #takeWhole(): void {
    if (this.#endBytes === undefined) return;
    this.#endBytes = undefined;
    this.sink = this.#job.whole ?? this.sink;
  }

  async #receive(answer: Answer, attempt: AbortController): Promise<boolean> {
    const { url, signal } = this.#job;
    const reader = answer.body.getReader();
    const rate = new Rate(this.#job, attempt);
    let at = answer.startBytes;
    for (;;) {
      const { done, value } = await rate
        .of(this.#unstalled(reader.read(), attempt))
        .catch((error: unknown) => {
          signal.throwIfAborted();
          // Every byte has arrived; only the end of the connection was not clean.
          const isWhole = this.#endBytes === undefined && at === answer.endBytes;
          if (isWhole) return { done: true as const, value: undefined };
          if (error instanceof TransientFailure) throw error;
          throw new TransientFailure(`the answer of ${url} broke off (${messageOf(error)})`);
        });
      if (done) break;
      if (at === 0 && looksLikeWebPage(value)) throw webPage(url);
      at += value.length;
      if (at > (answer.endBytes ?? at)) throw tooLong(url, answer);
      rate.add(value.length);
      await this.sink.accept(value);
    }
    if (at < (answer.endBytes ?? at)) {
      throw new TransientFailure(
        `the answer of ${url} ended after ${at} of ${answer.endBytes} bytes`,
      );
    }
    // A server may send less than the requested range.
    const sizeBytes = answer.version.sizeBytes ?? at;
    return at >= Math.min(this.#endBytes ?? sizeBytes, sizeBytes);
  }

  /** Aborts the attempt if the promise takes longer than a stall. */
  async #unstalled<T>(promise: Promise<T>, attempt: AbortController): Promise<T> {
    const { url, clock } = this.#job;
    const settled = new AbortController();
    const stall = clock.sleep(STALL_MS, settled.signal).then(() => {
      const error = new TransientFailure(`${url} sent no byte for ${STALL_MS / 1000} seconds`);
      attempt.abort(error);
      throw error;
    });
    // Whichever loses the race rejects later.
    stall.catch(() => {});
    promise.catch(() => {});
    try {
      return await Promise.race([promise, stall]);
    } finally {
      settled.abort();
    }
  }
}

/** Aborts an attempt whose answer makes no progress. */
class Rate {
  #arrivedBytes = 0;
  /** Looks since the last progress. */
  #looks = 0;
  #isAwaited = false;

  constructor({ url, clock }: Transfer, attempt: AbortController) {
    const watch = async () => {
      while (this.#looks < SLOW_MS / LOOK_MS) {
        await clock.sleep(LOOK_MS, attempt.signal);
        if (this.#isAwaited) this.#looks += 1;
      }
      const message = `${url} sent only ${this.#arrivedBytes} bytes in ${SLOW_MS / 1000} seconds`;
      attempt.abort(new SlowAnswer(message));
    };
    // The attempt is over.
    watch().catch(() => {});
  }

  /** Settles as `bytes` does, which the network sends. */
  async of<T>(bytes: Promise<T>): Promise<T> {
    this.#isAwaited = true;
    try {
      return await bytes;
    } finally {
      this.#isAwaited = false;
    }
  }

  add(bytes: number): void {
    this.#arrivedBytes += bytes;
    if (this.#arrivedBytes < PROGRESS_BYTES) return;
    this.#arrivedBytes = 0;
    this.#looks = 0;
  }
}

export function changed(url: string): ChangedFile {
  return new ChangedFile(`${url} changed while it was being read: load the model again`);
}

function tooLong(url: string, { isRange, endBytes }: Answer): TypeError {
  const message = `${url} sent more bytes than it announced (${endBytes})`;
  if (isRange) return new UntrustedRange(message);
  return new TypeError(
    `${message}: if it compresses the file, it must list Content-Encoding in Access-Control-Expose-Headers`,
  );
}

function waitMs(failures: number, { retryAfterMs }: TransientFailure, clock: Clock): number {
  const doubled = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  // Clients that failed at the same time do not come back at the same time.
  const backOff = doubled * (0.5 + clock.random() / 2);
  const asked = Math.min(retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS);
  return asked > backOff ? asked + clock.random() * FIRST_WAIT_MS : backOff;
}

function lastFailure(
  job: Transfer,
  sink: Sink,
  error: TransientFailure,
  attempts: number,
): TypeError {
  const size = sink.version?.sizeBytes;
  const arrived = `${sink.position} of ${size ?? "an unknown number of"} bytes have arrived`;
  const cause = error.isUnreached ? ` ${likelyCause(job.url)}` : "";
  const tried = attempts === 1 ? "" : `, tried ${attempts} times`;
  return new TypeError(`${error.message}${tried}; ${arrived}.${cause}`);
}
