//! The messages between tabs that share an engine, and which tabs share one. `shared_keeper.ts` sends and answers.

import type { EngineChange, LoadState } from "../exchange/engine_change.js";
import type { LoadProgress, LoraLocation, WireFailure } from "../exchange/protocol.js";

/** A string that is equal for equal options. Files count as equal when their names, sizes and times are. */
export async function keyOf(options: unknown): Promise<string> {
  const text = JSON.stringify(options, (_, value) =>
    value instanceof Blob
      ? [value.size, value.type, value instanceof File && [value.name, value.lastModified]]
      : value,
  );
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A call of a tab to the owner, besides exchanges. */
export type Call =
  | { method: "ready" }
  | { method: "info" }
  | { method: "restart" }
  | { method: "pauseDownload"; isPaused: boolean }
  | { method: "setLora"; lora: LoraLocation[] };

/** The state of an engine: the last progress of its load, and its state. */
export interface Standing {
  progress: LoadProgress | undefined;
  state: LoadState;
}

/** A message on the channel of all tabs that share an engine. */
export type Message =
  /** I run the engine from now on, or still do. */
  | ({ type: "owner"; owner: string } & Standing)
  /** Asks which tab runs the engine. */
  | { type: "who" }
  /** Open the channel of this exchange. */
  | { type: "open"; owner: string; exchange: string }
  | { type: "call"; owner: string; id: string; call: Call }
  | { type: "result"; id: string; value?: unknown; failure?: WireFailure }
  | { type: "change"; change: EngineChange }
  | { type: "lora"; lora: LoraLocation[] };
