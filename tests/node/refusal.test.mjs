//! The engine worker's answer to a refused request does not wait for news of a lost device.

import assert from "node:assert/strict";
import { test } from "node:test";
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
