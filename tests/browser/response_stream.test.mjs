//! The reading of a response's events by `engine.responses.create`. No browser is needed: the answers are written here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const load = (file) => import(pathToFileURL(join(root, "www/dist", file)).href);
const { Calls } = await load("api/calls.js");
const { Responses } = await load("api/responses.js");

/** The API before an endpoint that answers with these frames, and the requests that it gets. */
function answeredWith(frames) {
  const requests = [];
  const door = async (url, init) => {
    requests.push({ url, body: JSON.parse(init.body) });
    return new Response(frames, {
      headers: { "content-type": "text/event-stream; charset=utf-8" },
    });
  };
  return { responses: new Responses(new Calls(door, "/v1", undefined)), requests };
}

const frame = (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
const created = { type: "response.created", sequence_number: 0 };
const delta = { type: "response.output_text.delta", delta: "a", sequence_number: 1 };

/** The items of the iteration, and the error that ends it. */
async function read(frames) {
  const { responses } = answeredWith(frames);
  const events = [];
  try {
    const stream = await responses.create({ model: "m", input: "q", stream: true });
    for await (const event of stream) events.push(event);
    return { events };
  } catch (error) {
    return { events, error };
  }
}

test("the request goes to the route", async () => {
  const { responses, requests } = answeredWith(frame({ type: "response.completed" }));
  await responses.create({ model: "m", input: "q", stream: true });
  const [{ url, body }] = requests;
  assert.equal(new URL(url).pathname, "/v1/responses");
  assert.deepEqual(body, { model: "m", input: "q", stream: true });
});

test("a whole response has the text of its messages, as the openai package adds it", async () => {
  const message = (...texts) => ({
    type: "message",
    content: texts.map((text) => ({ type: "output_text", text })),
  });
  const output = [{ type: "reasoning", content: [] }, message("a", "b"), message("c")];
  const door = async () => Response.json({ id: "r", output });
  const responses = new Responses(new Calls(door, "/v1", undefined));
  const whole = await responses.create({ model: "m", input: "q" });
  assert.deepEqual(whole, { id: "r", output, output_text: "abc" });
});

for (const type of ["response.completed", "response.incomplete"]) {
  test(`${type} is the last event`, async () => {
    const all = [created, delta, { type, sequence_number: 2 }];
    const { events, error } = await read(all.map(frame).join(""));
    assert.deepEqual(events, all);
    assert.equal(error, undefined);
  });
}

test("a failed response is an error", async () => {
  const failure = { type: "error", code: "device_lost", message: "gone", param: null };
  const { events, error } = await read([created, failure].map(frame).join(""));
  assert.deepEqual(events, [created]);
  assert.equal(error.name, "InpageError");
  assert.equal(error.code, "device_lost");
  assert.equal(error.message, "gone");
});

test("a stream that merely ends is an error", async () => {
  const { events, error } = await read([created, delta].map(frame).join(""));
  assert.equal(events.length, 2);
  assert.equal(error.code, "engine_unavailable");
});

test("an engine that is lost for good is an error", async () => {
  const lost =
    'data: {"error":{"message":"lost","type":"server_error","param":null,"code":"x"}}\n\n';
  const { error } = await read(`${frame(created)}${lost}data: [DONE]\n\n`);
  assert.equal(error.code, "x");
});
