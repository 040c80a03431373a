//! When one of several models may be loaded: one after the other, and within a memory budget. Models that are not in use make room.

import type { Admission } from "./engine_worker.js";

/** A model that is loaded or being loaded. */
export interface Member {
  /** Requests of this page that are in flight. */
  readonly leases: number;
  /** Requests that the worker knows of, also those of other tabs; asked after `settle`. */
  readonly openExchanges: number;
  /** Orders uses by time. */
  readonly lastUse: number;
  /** The model is loaded. */
  readonly isLoaded: boolean;
  /** It was unloaded or the engine was disposed. */
  readonly isGone: boolean;
  /** Resolves when `openExchanges` counts every request that has reached the worker until now. */
  settle(): Promise<unknown>;
  /** Takes no more requests from now on, and resolves when its memory is free. */
  unload(): Promise<void>;
}

export class Loads {
  readonly #budgetBytes: number;
  /** Members that have memory, and how much. */
  readonly #occupants = new Map<Member, number>();
  /** Resolves when the last load in the queue has ended. */
  #lastLoad: Promise<void> = Promise.resolve();
  #wake: (() => void)[] = [];

  constructor(budgetBytes: number = Number.POSITIVE_INFINITY) {
    this.#budgetBytes = budgetBytes;
  }

  /** Decides for the workers of a member; `onLoadEnd` is called after each load. */
  admissionOf(member: () => Member, onLoadEnd: (isLoaded: boolean) => void): Admission {
    let load = { hasFailed: false };
    return {
      mayOpen: (loaded) => {
        const begun = { hasFailed: false };
        load = begun;
        const onFailure = () => {
          begun.hasFailed = true;
          onLoadEnd(false);
          this.leave(member());
        };
        loaded.then(() => onLoadEnd(true), onFailure);
        return this.#mayOpen(member(), loaded);
      },
      mayRead: (memoryBytes) => this.#mayRead(member(), memoryBytes, load),
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

  async #mayOpen(member: Member, loaded: Promise<void>): Promise<void> {
    // A worker that takes over from a lost one does not wait: the load before it may wait for the requests of this one.
    if (this.#occupants.has(member)) return;
    const before = this.#lastLoad;
    this.#lastLoad = before.then(() => loaded.catch(() => {}));
    await before;
  }

  async #mayRead(member: Member, memoryBytes: number, load: { hasFailed: boolean }): Promise<void> {
    if (this.#occupants.has(member)) return;
    const isOver = () => member.isGone || load.hasFailed;
    // Nothing makes room for a model that is larger than the budget: its load refuses it.
    while (memoryBytes <= this.#budgetBytes && !isOver()) {
      const occupied = [...this.#occupants.values()].reduce((sum, bytes) => sum + bytes, 0);
      if (occupied + memoryBytes <= this.#budgetBytes) break;
      const changed = new Promise<void>((resolve) => this.#wake.push(resolve));
      if (!(await this.#unloadOne())) await changed;
    }
    if (!isOver()) this.#occupants.set(member, memoryBytes);
  }

  /** Unloads the idle member that was not used for the longest time; false if all are in use. */
  async #unloadOne(): Promise<boolean> {
    const members = [...this.#occupants.keys()].sort((a, b) => a.lastUse - b.lastUse);
    for (const member of members) {
      if (!member.isLoaded || member.isGone || member.leases > 0) continue;
      await member.settle();
      if (!this.#occupants.has(member) || member.isGone) return true;
      if (member.leases > 0 || member.openExchanges > 0) continue;
      await member.unload();
      return true;
    }
    return false;
  }
}
