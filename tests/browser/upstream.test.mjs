//! Requests that are forwarded to another server, with a fake engine and a fake server.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let page;
let server;
let requests;
let openStreams;

/** An OpenAI-compatible server that answers with its own name; a prompt "endless" streams until the client is gone. */
function startUpstream() {
  const upstream = createServer(async (request, response) => {
    const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
    if (request.method === "OPTIONS") {
      response.writeHead(204, cors).end();
      return;
    }
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    requests.push({ url: request.url, authorization: request.headers.authorization, body });
    const chunk = (text) => JSON.stringify({ id: "up", choices: [{ index: 0, text }] });
    if (!body.stream) {
      response.writeHead(200, { ...cors, "content-type": "application/json" });
      response.end(chunk("upstream"));
      return;
    }
    response.writeHead(200, { ...cors, "content-type": "text/event-stream" });
    openStreams += 1;
    response.on("close", () => {
      openStreams -= 1;
    });
    const count = body.prompt === "endless" ? Number.POSITIVE_INFINITY : 3;
    for (let index = 0; index < count && !response.destroyed; index++) {
      response.write(`data: ${chunk(`up${index} `)}\n\n`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    response.end("data: [DONE]\n\n");
  });
  return new Promise((resolve) => upstream.listen(0, "127.0.0.1", () => resolve(upstream)));
}

before(async () => {
  server = await startUpstream();
  harness = await startHarness();
  page = await harness.open();
  await page.evaluate((baseURL) => {
    window.upstream = {
      baseURL,
      headers: { authorization: "Bearer theirs" },
      model: "big-model",
    };
    window.ask = async (engine, fields) => {
      const response = await engine.fetch("/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer ours" },
        body: JSON.stringify({ model: "fake", prompt: "count:2", ...fields }),
      });
      const { status, headers } = response;
      return { status, by: headers.get("x-inpage-upstream"), text: await response.text() };
    };
  }, `http://127.0.0.1:${server.address().port}/v1/`);
});
after(async () => {
  await harness?.close();
  server?.closeAllConnections();
  server?.close();
});
beforeEach(() => {
  requests = [];
  openStreams = 0;
});

test("nothing is forwarded while the engine can answer", async () => {
  const answer = await page.evaluate(async () => ask(await startFake({ upstream }), {}));
  assert.equal(answer.by, null);
  assert.match(answer.text, /é0 é1 /);
  assert.deepEqual(requests, []);
});

test("the server answers while the model loads, with its own key and model", async () => {
  const { early, late, streamed } = await page.evaluate(async () => {
    const engine = await startFake({ upstream, background: true, fakeLoadMs: 500 });
    const early = await ask(engine, {});
    let streamed = "";
    const stream = await engine.completions.create({ model: "x", prompt: "p", stream: true });
    for await (const chunk of stream) streamed += chunk.choices[0].text;
    await engine.ready;
    return { early, late: await ask(engine, {}), streamed };
  });
  assert.equal(early.status, 200);
  assert.match(early.by, /^http:\/\/127\.0\.0\.1:\d+\/v1\/completions$/);
  assert.match(early.text, /upstream/);
  assert.equal(streamed, "up0 up1 up2 ");
  assert.equal(late.by, null);
  assert.deepEqual(
    requests.map(({ url, authorization, body }) => [url, authorization, body.model]),
    [
      ["/v1/completions", "Bearer theirs", "big-model"],
      ["/v1/completions", "Bearer theirs", "big-model"],
    ],
  );
});

test("the server answers when the model cannot be loaded and when the queue is full", async () => {
  const [failed, busy] = await page.evaluate(async () => [
    await ask(await startFake({ upstream, fakeLoadError: true }), {}),
    await ask(await startFake({ upstream }), { prompt: "busy" }),
  ]);
  assert.match(failed.text, /upstream/);
  assert.match(busy.text, /upstream/);
  assert.equal(requests.length, 2);
});

test("`when` names the reasons", async () => {
  const { busy, failed } = await page.evaluate(async () => {
    const options = { ...upstream, when: ["loading"] };
    const engine = await startFake({ upstream: options });
    return {
      busy: await ask(engine, { prompt: "busy" }),
      failed: await caught(() => startFake({ upstream: options, fakeLoadError: true })),
    };
  });
  assert.deepEqual([busy.status, busy.by], [429, null]);
  assert.equal(failed.code, "model_not_loaded");
  assert.deepEqual(requests, []);
});

test("a function decides for each request and gets the reason, if there is one", async () => {
  const { answers, asked } = await page.evaluate(async () => {
    const asked = [];
    const when = ({ url, body, reason }) => {
      asked.push([new URL(url).pathname, body.prompt, reason ?? null]);
      return body.prompt === "long";
    };
    const engine = await startFake({ upstream: { ...upstream, when } });
    const answers = [];
    for (const prompt of ["count:1", "long", "busy"]) answers.push(await ask(engine, { prompt }));
    return { answers, asked };
  });
  assert.deepEqual(
    answers.map(({ status, by }) => [status, by !== null]),
    [
      [200, false],
      [200, true],
      [429, false],
    ],
  );
  assert.deepEqual(asked, [
    ["/v1/completions", "count:1", null],
    ["/v1/completions", "long", null],
    ["/v1/completions", "busy", null],
    ["/v1/completions", "busy", "busy"],
  ]);
  assert.equal(requests.length, 1);
});

test("an abort and a `break` end the request to the server", async () => {
  const result = await page.evaluate(async () => {
    const engine = await startFake({ upstream: { ...upstream, when: () => true } });
    const body = { model: "fake", prompt: "endless", stream: true };
    for await (const _ of await engine.completions.create(body)) break;
    const controller = new AbortController();
    return caught(async () => {
      const stream = await engine.completions.create(body, { signal: controller.signal });
      for await (const _ of stream) controller.abort();
    });
  });
  assert.equal(result.name, "AbortError");
  while (openStreams > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(requests.length, 2);
});

test("the engine's own error stays when the server cannot be reached", async () => {
  const closed = createServer();
  closed.listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port } = closed.address();
  closed.close();
  const { busy, thrown } = await page.evaluate(async (baseURL) => {
    const engine = await startFake({ upstream: { baseURL } });
    const always = await startFake({ upstream: { baseURL, when: () => true } });
    return {
      busy: await ask(engine, { prompt: "busy" }),
      thrown: await caught(() => ask(always, {})),
    };
  }, `http://127.0.0.1:${port}/v1`);
  assert.equal(busy.status, 429);
  assert.match(thrown.message, /did not answer at http.*\/v1\/completions.*CORS/);
});

test("requests of the service worker are also forwarded", async () => {
  const other = await harness.open();
  const { whole, streamed, own } = await other.evaluate(
    async (upstream) => {
      const when = ({ body }) => body.prompt.startsWith("up");
      const engine = await startFake({ upstream: { ...upstream, when } });
      const serving = inpage.serveFromPage(engine);
      await serving.ready;
      const post = async (body) => {
        const response = await fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "fake", ...body }),
        });
        return { by: response.headers.get("x-inpage-upstream"), text: await response.text() };
      };
      return {
        whole: await post({ prompt: "up" }),
        streamed: await post({ prompt: "up", stream: true }),
        own: await post({ prompt: "count:2" }),
      };
    },
    await page.evaluate(() => upstream),
  );
  assert.match(whole.text, /upstream/);
  assert.match(streamed.text, /up0 .*up2 .*\[DONE\]/s);
  assert.ok(whole.by && streamed.by);
  assert.equal(own.by, null);
  assert.match(own.text, /é0 é1 /);
});

test("a request goes to its own route of the server, without the caller's query", async () => {
  const { base, answers } = await page.evaluate(async () => {
    const base = `${upstream.baseURL}deep//?version=1`;
    const basePaths = ["/v1", "/openai/v1", "/site/api/"];
    const always = { ...upstream, baseURL: base, when: () => true };
    const engine = await startFake({ upstream: always, endpoint: { basePaths } });
    const answers = {};
    for (const path of [
      ...["/v1/completions", "/v1/completions/", "/openai/v1/completions?secret=1"],
      ...["/v1/chat/completions", "/site/api/chat/completions/?x=/completions"],
      ...["/v1/responses", "/openai/v1/responses?stream=true", "/v1/embeddings"],
      // Answered here, or refused here.
      ...["/v1/tokenize", "/v1/detokenize", "/v1/apply-template", "/v1/models"],
      ...["/v1/other/completions", "/v1/completions//", "/v1//completions", "/v1/edits"],
    ]) {
      const response = await engine.fetch(`https://inpage.invalid${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "fake", prompt: path }),
      });
      answers[path] = response.headers.get("x-inpage-upstream");
      await response.body?.cancel();
    }
    return { base, answers };
  });
  const { origin, pathname } = new URL(base);
  const prefix = pathname.replace(/\/+$/, "");
  const expected = {
    "/v1/completions": "/completions",
    "/v1/completions/": "/completions",
    "/openai/v1/completions?secret=1": "/completions",
    "/v1/chat/completions": "/chat/completions",
    "/site/api/chat/completions/?x=/completions": "/chat/completions",
    "/v1/responses": "/responses",
    "/openai/v1/responses?stream=true": "/responses",
    "/v1/embeddings": "/embeddings",
  };
  for (const [path, by] of Object.entries(answers)) {
    const route = expected[path];
    assert.equal(by, route ? `${origin}${prefix}${route}` : null, path);
  }
  assert.deepEqual(
    requests.map(({ url, body }) => [body.prompt, url]),
    Object.entries(expected).map(([path, route]) => [path, `${prefix}${route}?version=1`]),
  );
});

test("a reason sends chats and responses, but no embeddings", async () => {
  const { chat, response, embedding, list } = await page.evaluate(async () => {
    const engine = await startFake({
      upstream,
      fakeLoadError: true,
      endpoint: { chatTemplate: "x" },
    });
    const post = async (route, body) => {
      const init = { method: "POST", headers: { "content-type": "application/json" } };
      const answer = await engine.fetch(`/v1/${route}`, { ...init, body: JSON.stringify(body) });
      return { status: answer.status, text: await answer.text() };
    };
    const messages = [{ role: "user", content: "hello" }];
    const list = await engine.fetch("/v1/models");
    return {
      chat: await post("chat/completions", { model: "fake", messages }),
      response: await post("responses", { model: "fake", input: "hello" }),
      embedding: await post("embeddings", { model: "fake", input: "hello" }),
      list: list.headers.get("x-inpage-upstream"),
    };
  });
  assert.match(chat.text, /upstream/);
  assert.match(response.text, /upstream/);
  assert.equal(embedding.status, 503);
  assert.equal(list, null);
  assert.deepEqual(
    requests.map(({ url, body }) => [url, Object.keys(body)]),
    [
      ["/v1/chat/completions", ["model", "messages"]],
      ["/v1/responses", ["model", "input"]],
    ],
  );
});

test("a wrong option is refused by name", async () => {
  const results = await page.evaluate(async () => [
    await caught(() => startFake({ upstream: { baseURL: "/v1" } })),
    await caught(() => startFake({ upstream: { baseURL: "http://[" } })),
    await caught(() => startFake({ upstream: { ...upstream, when: ["sometimes"] } })),
  ]);
  assert.match(results[0].message, /upstream\.baseURL: \/v1 is answered by this engine itself/);
  assert.match(results[1].message, /upstream\.baseURL: "http:\/\/\[" is not a URL/);
  assert.match(results[2].message, /upstream\.when: "sometimes" is none of loading, failed, busy/);
});
