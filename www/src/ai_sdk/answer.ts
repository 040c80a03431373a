//! Converts parts of the endpoint's answers to the form of the AI SDK: finish reasons, token counts, metadata.

import type { ModelFinish, ModelResponse, ModelUsage } from "./model_types.js";

/** Token counts of completions and of chats. */
interface Counts {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
  completion_tokens_details?: object;
}

export function responseOf(answer: { id: string; created: number; model: string }): ModelResponse {
  const { id, created, model } = answer;
  return { id, modelId: model, timestamp: new Date(created * 1000) };
}

export function finishOf(raw: string | null | undefined): ModelFinish {
  const known = raw === "stop" || raw === "length" ? raw : "other";
  return { unified: raw === "tool_calls" ? "tool-calls" : known, raw: raw ?? undefined };
}

export function usageOf(counts: Counts | null | undefined): ModelUsage {
  const { prompt_tokens: input, completion_tokens: output } = counts ?? {};
  const cached = counts?.prompt_tokens_details?.cached_tokens;
  const noCache = input === undefined || cached === undefined ? undefined : input - cached;
  const details: { reasoning_tokens?: number } = counts?.completion_tokens_details ?? {};
  const reasoning = details.reasoning_tokens;
  const text = output === undefined ? undefined : output - (reasoning ?? 0);
  return {
    inputTokens: { total: input, noCache, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: output, text, reasoning },
  };
}
