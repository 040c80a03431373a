//! The events of an engine: what its listeners get.

import { InpageError } from "../api/inpage_error.js";
import type { EngineChange, LoadState } from "../exchange/engine_change.js";
import type { LoadProgress } from "../exchange/protocol.js";

/** The events of an engine. Those about one of several models name it. */
export interface EngineEventMap {
  /** A load has made progress. */
  progress: Event & { readonly progress: LoadProgress };
  /** `engine.state` has changed, or the state of one of several models, whose name is `model`. */
  statechange: Event & { readonly state: LoadState; readonly model: string | undefined };
  /**
   * An engine that was ready is lost: its GPU device, its worker, or the tab that ran it. In-flight requests wait for the next one,
   * which the next request starts.
   */
  lost: Event & { readonly error: InpageError; readonly model: string | undefined };
}

/** The listeners of an engine. */
export interface EngineEvents extends EventTarget {
  addEventListener<Type extends keyof EngineEventMap>(
    type: Type,
    listener: (event: EngineEventMap[Type]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener<Type extends keyof EngineEventMap>(
    type: Type,
    listener: (event: EngineEventMap[Type]) => void,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | EventListenerOptions,
  ): void;
}

/** `EventTarget` with the types of an engine's events. */
export const EngineEvents = EventTarget as { new (): EngineEvents; prototype: EngineEvents };

/** The event of a change. */
export function eventOf(change: EngineChange): Event {
  const event = new Event(change.type);
  switch (change.type) {
    case "progress":
      return Object.assign(event, { progress: change.progress });
    case "statechange":
      return Object.assign(event, { state: change.state, model: change.model });
    case "lost": {
      const { code, message } = change.failure;
      return Object.assign(event, { error: InpageError.local(code, message), model: change.model });
    }
  }
}
