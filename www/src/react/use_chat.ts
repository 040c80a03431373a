//! `useChat`: a conversation in a component, with calls of tools.

import { useCallback, useRef, useState } from "react";
import type { ChatRequestMessage } from "../api/chat.js";
import type { getEngine } from "../engine/get_engine.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { AssistantMessage } from "../api/growing_message.js";
import { type ChatFields, type TurnOptions, answerTurn } from "./turn.js";
import type { EngineState } from "./use_engine.js";
import { useRun } from "./use_run.js";

/** The options of `useChat`. Other options than `engine` may differ with every rendering. */
export interface ChatHookOptions extends TurnOptions {
  /** The conversation at the beginning, such as a message of the role `system`. */
  initialMessages?: readonly ChatRequestMessage[];
  /** Called with the last message of a turn that was not stopped. */
  onFinish?: (message: AssistantMessage) => void;
}

/** A conversation whose last message grows while it is generated. */
export interface ChatState {
  /** All messages. */
  messages: readonly ChatRequestMessage[];
  /** True from the call of `send` until the turn is whole, stopped or failed. The load of the model counts. */
  isLoading: boolean;
  /** The error of the last turn, or of the load of the model. */
  error: Error | undefined;
  /** The last report of the load. */
  progress: EngineState["progress"];
  /** The engine; undefined until its model is loaded. */
  engine: EngineState["engine"];
  /**
   * Adds a message of the user and answers it. Resolves with the last message of the turn, or undefined if it was stopped or has
   * failed. A turn that runs is stopped.
   */
  send(
    content: NonNullable<ChatRequestMessage["content"]>,
    body?: ChatFields,
  ): Promise<AssistantMessage | undefined>;
  /** Answers the last message of the user again. */
  regenerate(body?: ChatFields): Promise<AssistantMessage | undefined>;
  /** Stops the answer; its text so far stays. */
  stop(): void;
  /** Replaces the conversation. A turn that runs is stopped. */
  setMessages(messages: readonly ChatRequestMessage[]): void;
}

/** `useChat` with engines from `get`. */
export function chatHook(
  get: typeof getEngine,
  useEngine: (options?: EngineOptions) => EngineState,
): (options?: ChatHookOptions) => ChatState {
  return function useChat(options = {}) {
    const { engine, progress, error: loadError } = useEngine(options.engine);
    const [messages, show] = useState<readonly ChatRequestMessage[]>(
      () => options.initialMessages ?? [],
    );
    const { isLoading, error, run, stop } = useRun();
    const latest = useRef(options);
    latest.current = options;
    /** The messages that are shown, for calls between renderings. */
    const all = useRef(messages);

    const set = useCallback((next: readonly ChatRequestMessage[]) => {
      all.current = next;
      show(next);
    }, []);

    const answer = useCallback(
      async (asked: readonly ChatRequestMessage[], fields: ChatFields | undefined) => {
        const message = await run((signal) => {
          const change = (next: readonly ChatRequestMessage[]) => {
            if (!signal.aborted) set(next);
          };
          change(asked);
          return answerTurn(get, latest.current, fields, asked, change, signal);
        });
        if (message !== undefined) latest.current.onFinish?.(message);
        return message;
      },
      [],
    );

    const send = useCallback<ChatState["send"]>(
      (content, fields) => answer([...all.current, { role: "user", content }], fields),
      [],
    );
    const regenerate = useCallback<ChatState["regenerate"]>((fields) => {
      const last = all.current.findLastIndex(({ role }) => role === "user");
      return answer(all.current.slice(0, last + 1), fields);
    }, []);
    const setMessages = useCallback<ChatState["setMessages"]>((next) => {
      stop();
      set(next);
    }, []);

    return {
      ...{ messages, isLoading, error: error ?? loadError, progress, engine },
      ...{ send, regenerate, stop, setMessages },
    };
  };
}
