//! The members of an engine that other parts of the package use, and apps do not.

export interface EngineInternals {
  /**
   * Passes the engine a port for a single exchange; the other end of the channel may be anywhere. Resolves with a signal that aborts
   * when the worker that has the port is lost.
   */
  connect(port: MessagePort): Promise<AbortSignal> | undefined;
}

const all = new WeakMap<object, EngineInternals>();

/** Called once for each engine. */
export function setInternals(engine: object, internals: EngineInternals): void {
  all.set(engine, internals);
}

/** @throws TypeError for an object that is no engine of this copy of the package */
export function internalsOf(engine: object): EngineInternals {
  const internals = all.get(engine);
  if (internals === undefined) throw new TypeError("this is no engine of this copy of inpage");
  return internals;
}
