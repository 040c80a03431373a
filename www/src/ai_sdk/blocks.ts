//! The parts of a streamed answer in the AI SDK: reasoning, text and each call are blocks, one after the other.

import type { ChatDelta, ChatUsage, Usage } from "../generated/types.js";
import { finishOf, responseOf, usageOf } from "./answer.js";
import type { ModelStreamPart, ModelToolCall } from "./model_types.js";

/** The members that chunks of chats and of completions share. */
interface Chunk<Choice> {
  id: string;
  created: number;
  model: string;
  choices: readonly (Choice & { finish_reason: string | null })[];
  usage?: ChatUsage | Usage | null;
}

/** The parts of a streamed answer. `deltaOf` gives what a choice adds to its message. */
export async function* partsOf<Choice>(
  chunks: AsyncIterable<Chunk<Choice>>,
  deltaOf: (choice: Choice) => ChatDelta,
): AsyncGenerator<ModelStreamPart, void> {
  const blocks = new Blocks();
  let isStarted = false;
  let finish: string | null | undefined;
  let usage: Chunk<Choice>["usage"];
  for await (const chunk of chunks) {
    if (!isStarted) {
      isStarted = true;
      yield { type: "response-metadata", ...responseOf(chunk) };
    }
    const [choice] = chunk.choices;
    if (choice) yield* blocks.partsOf(deltaOf(choice));
    finish = choice?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  yield* blocks.end();
  yield { type: "finish", usage: usageOf(usage), finishReason: finishOf(finish) };
}

/** The call, if its arguments are whole: the token limit may have cut them off. */
export function wholeCall(toolCallId: string, toolName: string, input: string): ModelToolCall[] {
  try {
    JSON.parse(input);
  } catch {
    return [];
  }
  return [{ type: "tool-call", toolCallId, toolName, input }];
}

/** The block that a message is in. */
type Block =
  | { type: "text" | "reasoning"; id: string }
  | { type: "tool-input"; id: string; index: number; toolName: string; input: string };

class Blocks {
  #open: Block | undefined;
  /** Number of blocks that were opened, which are named after it. */
  #count = 0;

  *partsOf(delta: ChatDelta): Generator<ModelStreamPart> {
    if (delta.reasoning_content) yield* this.#text("reasoning", delta.reasoning_content);
    if (delta.content) yield* this.#text("text", delta.content);
    for (const { index, id, function: called } of delta.tool_calls ?? []) {
      if (this.#open?.type !== "tool-input" || this.#open.index !== index) {
        yield* this.end();
        const toolName = called?.name ?? "";
        const own = id ?? `call-${index}`;
        this.#open = { type: "tool-input", id: own, index, toolName, input: "" };
        yield { type: "tool-input-start", id: own, toolName };
      }
      const piece = called?.arguments ?? "";
      if (piece === "") continue;
      this.#open.input += piece;
      yield { type: "tool-input-delta", id: this.#open.id, delta: piece };
    }
  }

  /** The end of the block that is open. A call that the token limit has cut off is not reported. */
  *end(): Generator<ModelStreamPart> {
    const block = this.#open;
    this.#open = undefined;
    if (block === undefined) return;
    yield { type: `${block.type}-end`, id: block.id };
    if (block.type === "tool-input") yield* wholeCall(block.id, block.toolName, block.input);
  }

  *#text(type: "text" | "reasoning", delta: string): Generator<ModelStreamPart> {
    if (this.#open?.type !== type) {
      yield* this.end();
      this.#open = { type, id: `${type}-${this.#count++}` };
      yield { type: `${type}-start`, id: this.#open.id };
    }
    yield { type: `${type}-delta`, id: this.#open.id, delta };
  }
}
