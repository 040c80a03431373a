//! The limits of `inpage serve` on requests: checks before the body, budgets, times, turns. The endpoint is real where
//! its answers matter, else a function.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { createEngine } from "inpage";
import { Access } from "../../www/bin/access.mjs";
import { serverOf } from "../../www/bin/http_door.mjs";
import { exchangeRaw, headOf, postOf, rawClient } from "./raw_client.mjs";

const BASE_PATHS = ["/v1"];
const PATH = "/v1/completions";
const HEAD_AND_BODY = /\r\n\r\n.*\}$/s;
const statusOf = (answer) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

/** Starts a door around `answer`, a function of the request's init. */
async function openDoor(t, answer, limits) {
  const engine = { basePaths: BASE_PATHS, fetch: async (_, init) => answer(init) };
  return openServer(t, serverOf(engine, new Access(), limits));
}

async function openServer(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

describe("before the body", () => {
  let engine;
  const bodies = [];

  before(async () => {
    engine = await createEngine({ endpoint: { apiKey: "k1", maxBodyBytes: 1000 } });
  });
  after(() => engine?.dispose());

  const watched = () => ({
    basePaths: engine.basePaths,
    fetch: (url, init) => {
      bodies.push(init.body?.length);
      return engine.fetch(url, init);
    },
  });
  const open = (t) =>
    openServer(t, serverOf(watched(), new Access(), { apiKey: "k1", maxBodyBytes: 1000 }));
  const KEY = { authorization: "Bearer k1" };
  const LONG = { "content-length": "900" };

  test("the endpoint's refusals come without a byte of it", async (t) => {
    const origin = await open(t);
    for (const [path, headers, status, code] of [
      [PATH, LONG, 401, "invalid_api_key"],
      [PATH, { ...LONG, authorization: "Bearer k" }, 401, "invalid_api_key"],
      [PATH, { ...LONG, authorization: "Basic k1" }, 401, "invalid_api_key"],
      [PATH, { "transfer-encoding": "chunked" }, 401, "invalid_api_key"],
      ["/v1/none", { ...KEY, ...LONG }, 404, "unknown_url"],
      ["/v2/completions", { ...KEY, ...LONG }, 404, "unknown_url"],
      ["/v1/models", { ...KEY, ...LONG }, 405, "method_not_allowed"],
      [PATH, { ...KEY, ...LONG, "content-type": "text/plain" }, 415, "unsupported_media_type"],
      [PATH, { ...KEY, "content-length": "1001" }, 413, "request_too_large"],
      [PATH, { ...KEY, ...LONG, host: "evil.example" }, 403, "origin_not_allowed"],
    ]) {
      bodies.length = 0;
      const { answer, socket } = await exchangeRaw(origin, headOf(path, headers), HEAD_AND_BODY);
      assert.equal(statusOf(answer), status, answer);
      assert.match(answer, new RegExp(`"code":"${code}"`));
      assert.match(answer, /^connection: close\r$/im);
      if (status !== 403) assert.match(answer, /^access-control-allow-origin: \*\r$/im);
      assert.match(answer, /^x-request-id: req_[a-z0-9]{24}\r$/im, code);
      assert.ok(bodies.every((bytes) => bytes === undefined));
      socket.destroy();
    }
  });

  test("refusals below messages have the form of Anthropic's API", async (t) => {
    const origin = await open(t);
    const MESSAGES = "/v1/messages";
    for (const [path, headers, status, type] of [
      [MESSAGES, LONG, 401, "authentication_error"],
      [`${MESSAGES}/batches`, { ...KEY, ...LONG }, 404, "not_found_error"],
      [MESSAGES, { ...KEY, ...LONG, "content-type": "a/b" }, 415, "invalid_request_error"],
      [MESSAGES, { ...KEY, "content-length": "1001" }, 413, "request_too_large"],
      [`${MESSAGES}/count_tokens`, { ...LONG, host: "evil.example" }, 403, "permission_error"],
      ["/v1/threads/t/messages", { ...KEY, ...LONG }, 404, "invalid_request_error"],
    ]) {
      const { answer, socket } = await exchangeRaw(origin, headOf(path, headers), HEAD_AND_BODY);
      assert.equal(statusOf(answer), status, answer);
      const [head, body] = answer.split("\r\n\r\n");
      const { type: kind, error, request_id } = JSON.parse(body);
      assert.equal(error.type, type);
      assert.ok(error.message.length > 0);
      const isOpenAi = path.includes("threads");
      assert.equal(kind, isOpenAi ? undefined : "error");
      const id = /^request-id: (.+)\r?$/im.exec(head)?.[1];
      assert.equal(id, request_id);
      if (!isOpenAi) assert.match(id, /^req_[a-z0-9]{24}$/);
      socket.destroy();
    }
  });

  test("a client that asks first sends none in vain", async (t) => {
    const origin = await open(t);
    const expect = { expect: "100-continue" };
    const refused = await exchangeRaw(origin, headOf(PATH, { ...LONG, ...expect }));
    assert.equal(statusOf(refused.answer), 401);
    const accepted = headOf(PATH, { ...KEY, "content-length": "2", ...expect });
    const { answer, socket } = await exchangeRaw(origin, accepted, /\r\n\r\n/);
    assert.match(answer, /^HTTP\/1\.1 100 /);
    const answered = once(socket, "data");
    socket.write("{}");
    assert.match(`${(await answered)[0]}`, /^HTTP\/1\.1 400 /);
    socket.destroy();
  });

  test("a client that sends all of it before it reads gets the refusal", async (t) => {
    const origin = await open(t);
    const body = Buffer.alloc(8 << 20, 32);
    for (const [authorization, status] of [
      ["Bearer k1", 413],
      ["Bearer k2", 401],
    ]) {
      const headers = { authorization, "content-type": "application/json" };
      const answer = await fetch(`${origin}${PATH}`, { method: "POST", headers, body });
      assert.equal(answer.status, status);
    }
  });

  test("its size is also counted where the head does not tell it", async (t) => {
    const origin = await open(t);
    const head = headOf(PATH, { ...KEY, "transfer-encoding": "chunked" });
    const { answer } = await exchangeRaw(
      origin,
      `${head}3e9\r\n${" ".repeat(1001)}`,
      HEAD_AND_BODY,
    );
    assert.match(answer, /^HTTP\/1\.1 413 .*"code":"request_too_large"/s);
  });
});

test("bodies in flight share a budget; small ones need none", async (t) => {
  const arrived = [];
  const answer = ({ body }) => {
    arrived.push(body.length);
    return new Response('{"ok":true}');
  };
  const MIB = 1 << 20;
  const origin = await openDoor(t, answer, { maxBodyBytes: MIB, bodyBudgetBytes: MIB });
  /** Sends all but one byte of a body. If another body has the room at that moment, it is refused. */
  const hold = async () => {
    const { socket } = await rawClient(origin);
    socket.once("data", () => socket.destroy());
    socket.resume();
    socket.write(headOf(PATH, { "content-length": `${MIB}` }) + " ".repeat(MIB - 1));
    return socket;
  };
  const sendLarge = async () => {
    const response = await fetch(`${origin}${PATH}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: Buffer.alloc(MIB, 32),
    });
    return { response, body: await response.json() };
  };
  let holder = await hold();
  // Until the holder's bytes have arrived, there is room.
  let last;
  do {
    if (holder.destroyed) holder = await hold();
    last = await sendLarge();
  } while (last.response.status === 200 || holder.destroyed || holder.writableLength > 0);
  const { status, headers } = last.response;
  assert.deepEqual(
    [status, headers.get("retry-after"), headers.get("access-control-allow-origin")],
    [503, "1", "*"],
  );
  const { error } = last.body;
  assert.deepEqual([error.type, error.code], ["server_error", "server_busy"]);
  const small = await exchangeRaw(origin, postOf(PATH, { a: "x".repeat(60_000) }), HEAD_AND_BODY);
  assert.equal(statusOf(small.answer), 200);
  holder.destroy();
  do last = await sendLarge();
  while (last.response.status === 503);
  assert.equal(last.response.status, 200);
  assert.ok(arrived.includes(MIB));
});

test("heads and bodies that do not come are given up", async (t) => {
  const limits = { headerTimeoutMs: 300, bodyTimeoutMs: 900 };
  const origin = await openDoor(t, () => new Response("{}"), limits);
  const started = performance.now();
  const silent = await rawClient(origin);
  silent.socket.resume();
  const head = await exchangeRaw(origin, "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n");
  const body = await exchangeRaw(origin, `${headOf(PATH, { "content-length": "10" })}{`);
  await silent.closed;
  assert.deepEqual(
    [head, body].map(({ answer }) => statusOf(answer)),
    [408, 408],
  );
  assert.ok(performance.now() - started >= 900);
});

test("more connections than allowed are closed, and the others stay", async (t) => {
  const origin = await openDoor(t, () => new Response("{}"), { maxConnections: 2 });
  const [first] = [await rawClient(origin), await rawClient(origin)];
  const third = await rawClient(origin);
  third.socket.resume();
  await third.closed;
  first.socket.resume();
  const answered = once(first.socket, "data");
  first.socket.write(postOf(PATH, {}));
  assert.equal(statusOf(`${(await answered)[0]}`), 200);
});

test("a connection's requests are answered one after another, and only some are taken ahead", async (t) => {
  let running = 0;
  let most = 0;
  const answer = async ({ body }) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running -= 1;
    return new Response(body);
  };
  const origin = await openDoor(t, answer);
  const some = Array.from({ length: 5 }, (_, index) => postOf(PATH, { index }));
  const { answer: text } = await exchangeRaw(origin, some.join(""), /"index":4/);
  assert.deepEqual(
    text.match(/"index":\d/g),
    [0, 1, 2, 3, 4].map((index) => `"index":${index}`),
  );
  assert.equal(most, 1);
  const many = await exchangeRaw(origin, postOf(PATH, {}).repeat(30));
  assert.ok((many.answer.match(/HTTP\/1\.1 200/g) ?? []).length < 9);
});

test("an answer that is not read is given up, with its generation; a slow reader gets all of it", async (t) => {
  const piece = new Uint8Array(1 << 20).fill(46);
  const signals = [];
  let isCancelled = false;
  const answer = ({ body, signal }) => {
    signals.push(signal);
    let left = JSON.parse(Buffer.from(body)).pieces;
    const stream = new ReadableStream({
      pull(controller) {
        if (left-- > 0) controller.enqueue(piece);
        else controller.close();
      },
      cancel() {
        isCancelled = true;
      },
    });
    return new Response(stream);
  };
  const origin = await openDoor(t, answer, { writeTimeoutMs: 1000 });
  const stalled = await rawClient(origin);
  stalled.socket.write(postOf(PATH, { pieces: 1e6 }));
  while (signals.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  if (!signals[0].aborted) await once(signals[0], "abort");
  // The stream may be cancelled a moment after the connection is closed.
  while (!isCancelled) await new Promise((resolve) => setTimeout(resolve, 5));

  // Some megabytes are in the buffers of the system, so that the server waits for this client again and again.
  const slow = await rawClient(origin);
  slow.socket.write(postOf(PATH, { pieces: 12 }, { connection: "close" }));
  let bytes = 0;
  for await (const { length } of slow.socket) {
    bytes += length;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.ok(bytes > 12 * piece.length, `${bytes} bytes`);
});
