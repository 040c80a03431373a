//! The engine worker's answer to a refused request does not wait for news of a lost device; and errors that only JavaScript can
//! report have the form of their route.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineFailure } from "../../www/dist/exchange/error_response.js";
import { refuse } from "../../www/dist/exchange/refusal.js";
import { exchange } from "../../www/dist/exchange/requester.js";
import { respond } from "../../www/dist/worker/responder.js";

/** Asks an engine that answers with this status and reports a failure; `onSurvives` is called with what is checked. */
async function ask(status, onSurvives) {
  let pieces = [new TextEncoder().encode("refused")];
  const response = {
    status,
    headers: [["content-type", "application/json"]],
    next: async () => pieces.shift(),
    cancel() {
      pieces = [];
    },
    failure: { code: "internal_error", message: "refused" },
    free() {},
  };
  const life = {
    engine: Promise.resolve({ handle: async () => response }),
    dead: new AbortController().signal,
    survives: async (failure) => onSurvives(failure),
    failureOf: (error) => error,
  };
  const { port1, port2 } = new MessageChannel();
  const served = respond(port2, life);
  const lost = new AbortController().signal;
  const request = {
    method: "GET",
    url: "http://localhost/v1/x",
    headers: [],
    body: new Uint8Array(),
  };
  const answer = await exchange({ port: port1, lost }, request, { transport: "chunks" });
  assert.equal(answer.status, status);
  assert.equal(await answer.text(), "refused");
  await served;
}

test("only failures of the engine are checked", async () => {
  const checked = [];
  await ask(404, (failure) => checked.push(failure));
  assert.ok(checked.length > 0 && checked.every((failure) => failure === undefined));
  checked.length = 0;
  await ask(500, (failure) => checked.push(failure?.code));
  assert.ok(checked.length > 0 && checked.every((code) => code === "internal_error"));
});

const failure = new EngineFailure("internal_error", "gone");
const lostForGood = { transport: "chunks", reconnect: () => Promise.reject(failure) };
const connected = (port) => ({ port, lost: new AbortController().signal });
const requestTo = (path) => {
  const url = `http://localhost${path}`;
  return { method: "POST", url, headers: [], body: new Uint8Array() };
};

test("an engine that cannot answer refuses in the form of the route", async () => {
  const about = { message: "gone", param: null, code: "internal_error" };
  const messageError = { ...about, type: "api_error" };
  const asMessage = (id) => ({ type: "error", error: messageError, request_id: id });
  const asOpenAi = () => ({ error: { ...about, type: "server_error" } });
  const asRerank = () => ({ ...asOpenAi(), message: "gone", detail: "gone" });
  for (const [path, expected] of [
    ["/v1/messages", asMessage],
    ["/v1/messages/", asMessage],
    ["/api/messages/count_tokens?beta=true", asMessage],
    ["/v1/chat/completions", asOpenAi],
    ["/v1/messages/batches/x", asMessage],
    ["/v1/models/messages", asOpenAi],
    ["/v1/models/org/messages", asOpenAi],
    ["/v1/threads/t/messages", asOpenAi],
    ["/v1/rerank", asRerank],
    ["/v2/rerank/?x=1", asRerank],
    ["/v1/reranking", asRerank],
    ["/v1/models/org/rerank", asOpenAi],
  ]) {
    const { port1, port2 } = new MessageChannel();
    refuse(port2, failure);
    const answer = await exchange(connected(port1), requestTo(path), lostForGood);
    assert.equal(answer.status, 500);
    const id = answer.headers.get("x-request-id");
    const isAnthropic = expected === asMessage;
    assert.equal(answer.headers.get("request-id"), isAnthropic ? id : null, path);
    const exposed = answer.headers.get("access-control-expose-headers").split(", ");
    assert.equal(exposed.includes("request-id"), isAnthropic);
    assert.deepEqual(await answer.json(), expected(id), path);
  }
});

test("a stream of an engine that is lost ends with an error in the form of the route", async () => {
  for (const [path, expected] of [
    [
      "/v1/messages",
      'event: error\ndata: {"type":"error","error":{"message":"gone","type":"overloaded_error","param":null,"code":"engine_unavailable"},"request_id":null}\n\n',
    ],
    [
      "/v1/responses",
      'data: {"error":{"message":"gone","type":"server_error","param":null,"code":"engine_unavailable"}}\n\ndata: [DONE]\n\n',
    ],
  ]) {
    const { port1, port2 } = new MessageChannel();
    port2.onmessage = ({ data }) => {
      if (data.type !== "request") return;
      const headers = [["content-type", "text/event-stream"]];
      port2.postMessage({ type: "head", status: 200, headers });
      port2.postMessage({ type: "lost", failure: { code: "engine_unavailable", message: "gone" } });
      port2.close();
    };
    const answer = await exchange(connected(port1), requestTo(path), lostForGood);
    assert.equal(await answer.text(), expected);
  }
});
