//! Decides when one of several models may be loaded: one after the other, and within a memory budget. Models that are not in use make room.
//!
//! A load asks twice. The worker of such a model asks the page before it opens the files, where loads wait for their
//! turn, and before it reads the weights, when the headers have told what the model needs: then models that are not in
//! use make room. So the endpoint of a model that waits already answers, and the size needs no second download. A
//! worker that takes over from a lost one does not wait: the load before it may be waiting for the requests of this
//! one. A model is idle when the page has no request for it and, asked after that, its worker has none either, because
//! other tabs may use it.

import { type Deferred, deferred } from "../exchange/abort.js";
import { EngineFailure } from "../exchange/error_response.js";
import type { Admission } from "../thread/engine_worker.js";

/** Tests shorten it. */
export const LOADS = {
  /** The time that a load waits for room. */
  maxWaitMs: 60_000,
};

/** A model that is loaded or being loaded. */
export interface Member {
  /** Requests of this page that are in flight. */
  readonly leases: number;
  /** Requests that the worker knows of, also those of other tabs; asked after `settle`. */
  readonly openExchanges: number;
  /** Orders uses by time. */
  readonly lastUse: number;
  /** True if the model is loaded. */
  readonly isLoaded: boolean;
  /** True if it was unloaded or the engine was disposed. */
  readonly isGone: boolean;
  /** Resolves when `openExchanges` counts every request that has reached the worker until now. */
  settle(): Promise<unknown>;
  /** Takes no more requests from now on, and resolves when its memory is free. */
  unload(): Promise<void>;
}

/** A load, from the question whether its files may be opened to its end. */
interface Load {
  readonly member: Member;
  /** Orders loads by the requests that started them. */
  readonly number: number;
  hasEnded: boolean;
  /** Resolves when it is its turn. */
  turn: Deferred<void>;
  /** True while it waits for room. */
  isWaiting: boolean;
  /** Room that other models are leaving for it: later loads do not take it. */
  reservedBytes: number;
  /** Models that were loaded while it waited for room. */
  readonly overtakers: Set<Member>;
}

/**
 * Loads take turns in the order of the requests that started them. One that waits for room gives its turn away, so later ones that fit go ahead
 * of it. It does not starve: it is the first to be asked when room becomes free, and models that went ahead take no further
 * requests as soon as they alone are in its way.
 */
export class Loads {
  readonly #budgetBytes: number;
  /** Members that have memory, and how much. */
  readonly #occupants = new Map<Member, number>();
  /** The load whose turn it is. */
  #current: Load | undefined;
  /** Loads that are not over, in the order of their numbers. */
  #loads: Load[] = [];
  /** The loads of `#loads` that want to go on. */
  readonly #queue = new Set<Load>();
  #numbered = 0;
  #wake: (() => void)[] = [];

  constructor(budgetBytes: number = Number.POSITIVE_INFINITY) {
    this.#budgetBytes = budgetBytes;
  }

  /** Decides for the workers of a member; `onLoadEnd` is called after each load. */
  admissionOf(member: () => Member, onLoadEnd: (isLoaded: boolean) => void): Admission {
    let load: Load | undefined;
    // Workers ask in any order, so the first load has the place of its request.
    let place: number | undefined = ++this.#numbered;
    return {
      mayOpen: async (loaded) => {
        const begun = this.#begin(member(), place ?? ++this.#numbered);
        place = undefined;
        load = begun;
        const onFailure = () => {
          onLoadEnd(false);
          this.#end(begun);
          this.leave(member());
        };
        const onSuccess = () => {
          onLoadEnd(true);
          this.#end(begun);
        };
        loaded.then(onSuccess, onFailure);
        // A worker that takes over from a lost one does not wait: the load before it may wait for the requests of this one.
        if (!this.#occupants.has(member())) await this.#takeTurn(begun);
      },
      mayRead: async (memoryBytes) => {
        if (load && !this.#occupants.has(load.member)) await this.#mayRead(load, memoryBytes);
      },
      onOpenExchanges: () => this.changed(),
    };
  }

  /** The memory of a member; `undefined` if it has none in this tab. */
  bytesOf(member: Member): number | undefined {
    return this.#occupants.get(member);
  }

  /** The memory of a member is free. */
  leave(member: Member): void {
    this.#occupants.delete(member);
    this.changed();
  }

  /** A member may have become idle, or is gone. */
  changed(): void {
    const woken = this.#wake;
    this.#wake = [];
    for (const wake of woken) wake();
  }

  #begin(member: Member, number: number): Load {
    const load: Load = {
      ...{ member, number, hasEnded: false, turn: deferred<void>() },
      ...{ isWaiting: false, reservedBytes: 0, overtakers: new Set<Member>() },
    };
    this.#loads.push(load);
    this.#loads.sort((a, b) => a.number - b.number);
    return load;
  }

  #end(load: Load): void {
    load.hasEnded = true;
    this.#loads = this.#loads.filter((it) => it !== load);
    this.#queue.delete(load);
    load.turn.resolve();
    this.#giveTurn(load);
  }

  #takeTurn(load: Load): Promise<void> {
    if (this.#current === load || load.hasEnded) return Promise.resolve();
    load.turn = deferred<void>();
    this.#queue.add(load);
    this.#next();
    return load.turn.promise;
  }

  #giveTurn(load: Load): void {
    if (this.#current !== load) return;
    this.#current = undefined;
    this.#next();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const next = this.#loads.find((load) => this.#queue.has(load));
    if (next === undefined) return;
    this.#queue.delete(next);
    this.#current = next;
    next.turn.resolve();
  }

  /** @throws EngineFailure if there is no room for too long */
  async #mayRead(load: Load, memoryBytes: number): Promise<void> {
    const { member } = load;
    const isOver = () => member.isGone || load.hasEnded;
    const patience = deferred<void>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLate = false;
    try {
      // Nothing makes room for a model that is larger than the budget: its load refuses it.
      while (memoryBytes <= this.#budgetBytes && !isOver()) {
        // Before the attempt, which takes a while.
        const changed = new Promise<void>((resolve) => this.#wake.push(resolve));
        if (await this.#makeRoom(load, memoryBytes)) break;
        timer ??= setTimeout(() => {
          isLate = true;
          patience.resolve();
        }, LOADS.maxWaitMs);
        load.isWaiting = true;
        this.#giveTurn(load);
        await Promise.race([changed, patience.promise]);
        if (!isLate) await Promise.race([this.#takeTurn(load), patience.promise]);
        if (isLate) throw noRoom(memoryBytes, this.#budgetBytes);
      }
    } finally {
      clearTimeout(timer);
      load.isWaiting = false;
      load.reservedBytes = 0;
    }
    if (isOver()) return;
    this.#occupants.set(member, memoryBytes);
    for (const { isWaiting, number, overtakers } of this.#loads) {
      if (isWaiting && number < load.number) overtakers.add(member);
    }
  }

  /**
   * Unloads idle members, those first that were not used for the longest time, if that makes room; returns whether there is
   * room.
   */
  async #makeRoom(load: Load, memoryBytes: number): Promise<boolean> {
    const { number, overtakers } = load;
    for (;;) {
      const members = [...this.#occupants.keys()].sort((a, b) => a.lastUse - b.lastUse);
      const isFree = this.#freeBytes() >= memoryBytes;
      const earlier = this.#loads.filter((it) => it.number < number && it.reservedBytes > 0);
      if (earlier.length > 0) {
        const reserved = earlier.reduce((sum, { reservedBytes }) => sum + reservedBytes, 0);
        const left = this.#bytesOf(members.filter(({ isGone }) => isGone)) - reserved;
        return isFree && this.#freeBytes() + left >= memoryBytes;
      }
      if (isFree) return true;
      // All members settle before the first is judged, because they change while this waits.
      await Promise.all(members.map((it) => isUsable(it) && it.settle()));
      const idle = members.filter((it) => isUsable(it) && it.leases + it.openExchanges === 0);
      const leaving = members.filter(({ isGone }) => isGone);
      const inTheWay = members.filter(
        (it) => overtakers.has(it) && isUsable(it) && it.openExchanges <= it.leases,
      );
      const least = memoryBytes - this.#freeBytes() - this.#bytesOf(leaving);
      const isReachable = least <= this.#bytesOf(new Set([...idle, ...inTheWay]));
      load.reservedBytes = isReachable ? memoryBytes : 0;
      if (!isReachable) return false;
      // Their requests in flight end first; `leave` is called after that.
      if (least > this.#bytesOf(idle)) for (const member of inTheWay) void member.unload();
      const [first] = idle;
      if (first === undefined || least <= 0) return this.#freeBytes() >= memoryBytes;
      await first.unload();
    }
  }

  #freeBytes(): number {
    return this.#budgetBytes - this.#bytesOf(this.#occupants.keys());
  }

  #bytesOf(members: Iterable<Member>): number {
    let sum = 0;
    for (const member of members) sum += this.#occupants.get(member) ?? 0;
    return sum;
  }
}

const isUsable = ({ isLoaded, isGone }: Member) => isLoaded && !isGone;

function noRoom(memoryBytes: number, budgetBytes: number): EngineFailure {
  const message = `there was no room for the model for ${LOADS.maxWaitMs / 1000} s: it needs ${memoryBytes} of the ${budgetBytes} bytes of memoryBudgetBytes, and other models have requests in flight`;
  return new EngineFailure("model_not_loaded", message);
}
