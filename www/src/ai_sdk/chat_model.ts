//! A model of the AI SDK that continues a conversation: text, reasoning and calls of tools.

import type { ChatCompletionChunk, ChatDelta, ChatUsage } from "../generated/types.js";
import { finishOf, responseOf, usageOf } from "./answer.js";
import { PROVIDER } from "./call_fields.js";
import { chatBody } from "./chat_body.js";
import type { EngineFor } from "./engine_for.js";
import type { LanguageModel, ModelContent, ModelStreamPart } from "./model_types.js";
import { partStream } from "./part_stream.js";

export function chatModel(modelId: string, engineFor: EngineFor): LanguageModel {
  return {
    specificationVersion: "v3",
    provider: `${PROVIDER}.chat`,
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const { body, warnings } = chatBody(modelId, call);
      const { chat } = await engineFor(call.abortSignal);
      const options = { signal: call.abortSignal };
      const answer = await chat.completions.create({ ...body, stream: false }, options);
      const [choice] = answer.choices;
      const content: ModelContent[] = [];
      const { reasoning_content: reasoning, content: text, tool_calls } = choice?.message ?? {};
      if (reasoning) content.push({ type: "reasoning", text: reasoning });
      if (text) content.push({ type: "text", text });
      for (const { id, function: called } of tool_calls ?? []) {
        if (isJson(called.arguments)) content.push(callOf(id, called.name, called.arguments));
      }
      return {
        content,
        finishReason: finishOf(choice?.finish_reason),
        usage: usageOf(answer.usage),
        request: { body },
        response: responseOf(answer),
        warnings,
      };
    },
    async doStream(call) {
      const { body, warnings } = chatBody(modelId, call);
      const { chat } = await engineFor(call.abortSignal);
      const streamed = { ...body, stream: true as const, stream_options: { include_usage: true } };
      const chunks = await chat.completions.create(streamed, { signal: call.abortSignal });
      const stream = partStream(warnings, partsOf(chunks), () => chunks.cancel());
      return { stream, request: { body: streamed } };
    },
  };
}

/** The parts of a streamed message. Reasoning, text and each call are blocks, one after the other. */
async function* partsOf(
  chunks: AsyncIterable<ChatCompletionChunk>,
): AsyncGenerator<ModelStreamPart, void> {
  const blocks = new Blocks();
  let isStarted = false;
  let finish: string | null | undefined;
  let usage: ChatUsage | null | undefined;
  for await (const chunk of chunks) {
    if (!isStarted) {
      isStarted = true;
      yield { type: "response-metadata", ...responseOf(chunk) };
    }
    const [choice] = chunk.choices;
    if (choice) yield* blocks.partsOf(choice.delta);
    finish = choice?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  yield* blocks.end();
  yield { type: "finish", usage: usageOf(usage), finishReason: finishOf(finish) };
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
    if (block.type === "tool-input" && isJson(block.input)) {
      yield callOf(block.id, block.toolName, block.input);
    }
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

const callOf = (toolCallId: string, toolName: string, input: string) => ({
  ...{ type: "tool-call" as const, toolCallId, toolName, input },
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
