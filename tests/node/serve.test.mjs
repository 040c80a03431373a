//! `inpage serve`: the endpoint over HTTP for the openai package, which web pages may use it, and its command line.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createEngine } from "inpage";
import OpenAI, * as sdk from "openai";
import { root, windows } from "../../scripts/process.mjs";
import { Access } from "../../www/bin/access.mjs";
import { serverOf } from "../../www/bin/http_door.mjs";
import { runServe, startServe } from "./serve_process.mjs";

const TALES = join(root, "www/models/tales.gguf");
const greedy = { model: "default", prompt: "Once upon a time", temperature: 0, max_tokens: 12 };

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

/** Like `fetch`, which does not let the caller set Host and Origin. */
function send(origin, path, { method = "POST", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const options = { method, headers: { "content-type": "application/json", ...headers } };
    const sent = httpRequest(`${origin}${path}`, options, async (answer) => {
      const text = Buffer.concat(await answer.toArray()).toString();
      resolve({ status: answer.statusCode, headers: answer.headers, text });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

describe("a server with several models", () => {
  let server;

  before(async () => {
    const bert = join(root, "tests/parity/embeddings/bert.gguf");
    server = await startServe(`story=${TALES}`, `texts=${bert}`, "--memory-budget", "1000000000");
  });
  after(() => server?.stop());

  test("each answers on the route that it fits, and is loaded for the first request", async () => {
    assert.match(server.output.stderr, /^story, texts, loaded on request$/m);
    const client = new OpenAI({ baseURL: `${server.origin}/v1`, apiKey: "x", maxRetries: 0 });
    const statuses = async () => (await client.models.list()).data.map(({ status }) => status);
    assert.deepEqual(await statuses(), ["unloaded", "unloaded"]);
    // No model is loaded, but each is once a request asks for it.
    const health = await send(server.origin, "/health", { method: "GET" });
    assert.deepEqual([health.status, health.text], [200, '{"status":"ok"}']);
    assert.deepEqual(await statuses(), ["unloaded", "unloaded"]);
    const { model, usage } = await client.completions.create(greedy);
    assert.deepEqual([model, usage.completion_tokens], ["story", 12]);
    const input = "A sentence.";
    const { data } = await client.embeddings.create({ model: "texts", input });
    assert.ok(data[0].embedding.length > 8);
    assert.deepEqual(await statuses(), ["ready", "ready"]);
    const unknown = client.completions.create({ ...greedy, model: "gpt-4" });
    await assert.rejects(unknown, /does not exist; these do: "story", "texts"/);
  });
});

describe("a server with a file, a key and names", () => {
  let server;

  before(async () => {
    server = await startServe(
      TALES,
      ...["--id", "story", "--api-key", "k1", "--context", "512", "--switches", '{"maxN":2}'],
      ...["--allow-host", "Box.LAN", "--allow-origin", "https://app.example.com"],
    );
  });
  after(() => server?.stop());

  const client = (options = {}) =>
    new OpenAI({ baseURL: `${server.origin}/v1`, apiKey: "k1", maxRetries: 0, ...options });
  const complete = (headers, body = JSON.stringify(greedy)) =>
    send(server.origin, "/v1/completions", {
      headers: { authorization: "Bearer k1", ...headers },
      body,
    });

  test("it listens on this machine and says where, and on which device", () => {
    assert.match(server.origin, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.match(server.output.stderr, /^story on .+, KV cache as f16$/m);
  });

  test("the openai package completes, plain and streamed", async () => {
    const plain = await client().completions.create(greedy);
    assert.match(plain._request_id, /^req_/);
    assert.equal(plain.usage.completion_tokens, 12);
    let text = "";
    let chunks = 0;
    for await (const chunk of await client().completions.create({ ...greedy, stream: true })) {
      text += chunk.choices[0].text;
      chunks += 1;
    }
    assert.equal(text, plain.choices[0].text);
    assert.ok(chunks > 1);
    const ids = [];
    for await (const { id } of client().models.list()) ids.push(id);
    assert.deepEqual(ids, ["story"]);
  });

  test("the key, the switches and the limit of the body are the endpoint's", async () => {
    const wrong = client({ apiKey: "k2" }).completions.create(greedy);
    await assert.rejects(wrong, sdk.AuthenticationError);
    await assert.rejects(client().completions.create({ ...greedy, n: 3 }), sdk.BadRequestError);
    const tooLong = await complete({}, `${" ".repeat(33 << 20)}{}`);
    assert.equal(tooLong.status, 413);
    assert.equal((await complete({})).status, 200);
  });

  test("the key may be in X-Api-Key, and whether the model is ready needs none", async () => {
    const body = JSON.stringify(greedy);
    const keyed = (key) =>
      send(server.origin, "/v1/completions", { headers: { "x-api-key": key }, body });
    assert.equal((await keyed("k1")).status, 200);
    assert.equal((await keyed("k2")).status, 401);
    for (const path of ["/health", "/v1/health"]) {
      const { status, text } = await send(server.origin, path, { method: "GET" });
      assert.deepEqual([status, text], [200, '{"status":"ok"}']);
    }
  });

  test("tokens are counted without a base path, too", async () => {
    const headers = { authorization: "Bearer k1" };
    const post = async (path, members) => {
      const body = JSON.stringify({ model: "default", ...members });
      const { status, text } = await send(server.origin, path, { headers, body });
      assert.equal(status, 200, text);
      return JSON.parse(text);
    };
    const { tokens } = await post("/tokenize", { content: "Once upon a time", add_special: false });
    const text = await post("/detokenize", { tokens });
    assert.deepEqual(text, { prompt: "Once upon a time", content: "Once upon a time" });
  });

  test("other paths are the endpoint's errors and are never sent on", async () => {
    for (const path of ["/", "/completions", "/v2/completions", "//v1/completions", "/v1/none"]) {
      const { status, text } = await send(server.origin, path, {
        method: "GET",
        headers: { authorization: "Bearer k1" },
      });
      assert.equal(status, 404, path);
      const { code, message } = JSON.parse(text).error;
      assert.equal(code, "unknown_url", path);
      // No path that nobody has asked for.
      const expected = path === "/v1/none" ? /the route \/none is/ : /no such URL: a base path/;
      assert.match(message, expected, path);
    }
  });

  test("programs and pages of this machine and allowed ones are answered", async () => {
    for (const headers of [
      {},
      { origin: "http://localhost:5173" },
      { origin: "https://app.example.com" },
      { host: "localhost:9" },
      { host: "box.lan:8080" },
    ]) {
      assert.equal((await complete(headers)).status, 200, JSON.stringify(headers));
    }
    const preflight = await send(server.origin, "/v1/completions", {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example.com",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
      },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers["access-control-allow-headers"], "authorization");
  });

  test("other names of this machine are refused, and the message says what allows them", async () => {
    const { status, text } = await complete({ host: "evil.example:8080" });
    assert.equal(status, 403);
    assert.match(JSON.parse(text).error.message, /--allow-host evil\.example allows/);
  });

  test("pages of other origins are refused, without CORS headers", async () => {
    for (const origin of ["https://evil.example", "null", "http://app.example.com"]) {
      const { status, headers, text } = await complete({ origin });
      assert.equal(status, 403);
      assert.equal(headers["access-control-allow-origin"], undefined);
      assert.equal(JSON.parse(text).error.code, "origin_not_allowed");
    }
  });

  test("an interrupt ends it, also while it answers", {
    skip: windows && "no signals",
  }, async () => {
    const sent = httpRequest(`${server.origin}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer k1" },
    });
    sent.end(JSON.stringify({ ...greedy, max_tokens: 400, ignore_eos: true, stream: true }));
    const [answer] = await once(sent, "response");
    answer.on("error", () => {});
    await once(answer, "data");
    assert.equal(await server.stop("SIGINT"), 0);
  });
});

test("a client that leaves ends its generation", async () => {
  const engine = await createEngine();
  let signal;
  const watched = {
    basePaths: engine.basePaths,
    fetch: (url, init) => {
      signal = init.signal;
      return engine.fetch(url, init);
    },
  };
  const server = serverOf(watched, new Access());
  try {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    // Takes much longer than the test waits for its start.
    const prompt = Array(64).fill(greedy.prompt);
    const long = { ...greedy, prompt, max_tokens: 400, ignore_eos: true };
    for (const stream of [true, false]) {
      const sent = httpRequest({
        ...{ port: server.address().port, path: "/v1/completions", method: "POST" },
        headers: { "content-type": "application/json" },
      });
      sent.on("error", () => {});
      sent.end(JSON.stringify({ ...long, stream }));
      if (stream) {
        const [answer] = await once(sent, "response");
        await once(answer, "data");
      }
      while ((await engine.info()).activeGenerations === 0) await pause();
      assert.ok(!signal.aborted);
      const left = once(signal, "abort");
      sent.destroy();
      await left;
      while ((await engine.info()).activeGenerations > 0) await pause();
    }
  } finally {
    server.close();
    await engine.dispose();
  }
});

describe("the rules of access", () => {
  const allows = (access, host, origin) =>
    access.refusal({ host, ...(origin && { origin }) }) === undefined;

  test("names of this machine", () => {
    const access = new Access();
    for (const host of [
      ...["localhost", "localhost:8080", "LOCALHOST:1", "app.localhost:80", "127.0.0.1:8080"],
      ...["127.9.9.9", "[::1]:8080", "[::1]"],
    ]) {
      assert.ok(allows(access, host), host);
    }
    for (const host of [
      ...["evil.example", "evil.example:8080", "localhost.evil.example", "notlocalhost", ""],
      ...["192.168.1.2:8080", "127.0.0.1.evil.example", "[::2]:80", "0.0.0.0"],
    ]) {
      assert.ok(!allows(access, host), host);
    }
  });

  test("pages of this machine, and allowed ones", () => {
    const access = new Access();
    for (const origin of ["http://localhost:3000", "https://localhost", "http://[::1]:5173"]) {
      assert.ok(allows(access, "localhost", origin), origin);
    }
    for (const origin of [
      ...["https://evil.example", "null", "http://localhost.evil.example", "localhost"],
      ...["https://evil.example:127"],
    ]) {
      assert.ok(!allows(access, "localhost", origin), origin);
    }
    for (const wrong of ["app.example.com", "https://app.example.com/page"]) {
      assert.throws(() => access.allowOrigin(wrong), /--allow-origin/);
    }
    access.allowOrigin("*");
    assert.ok(allows(access, "localhost", "null"));
  });
});

describe("the command line", () => {
  test("wrong usage is named, with status 2", async () => {
    for (const [args, said] of [
      [["--gpu"], /--gpu/],
      [["a.gguf", "b.gguf"], /need names: NAME=a\.gguf NAME=b\.gguf/],
      [["a=a.gguf", "b.gguf"], /b\.gguf has no name: NAME=MODEL/],
      [["a=a.gguf", "a=b.gguf"], /the name a is given twice/],
      [["a=a.gguf", "--id", "b"], /--id is for one model/],
      [["a=a.gguf", "--lora", "b.gguf"], /--lora is for one model/],
      [["a=a.gguf", "--memory-budget", "2 GB"], /--memory-budget takes a whole number/],
      [["--port", "70000"], /--port takes a whole number up to 65535, not 70000/],
      [["--context", "0"], /--context takes a whole number of at least 1/],
      [["--threads", "two"], /--threads takes a whole number of at least 1/],
      [["--device", "gpu"], /--device is auto, cpu, webgpu, not gpu/],
      [["--kv-format", "q4_0"], /--kv-format/],
      [["--allow-origin", "app.example.com"], /--allow-origin is \*/],
      [["--switches", "{"], /--switches/],
      [["--lora", "a.gguf=big"], /the scale is a number/],
    ]) {
      const { status, stdout, stderr } = await runServe(...args);
      assert.equal(status, 2, args.join(" "));
      assert.equal(stdout, "");
      assert.match(stderr, said);
    }
    const { status, stdout } = await runServe("--help");
    assert.equal(status, 0);
    assert.match(stdout, /--api-key KEY/);
  });

  test("a missing model, an unknown switch and a port in use end it with status 1", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    try {
      for (const [args, said] of [
        [["missing.gguf", "--port", "0"], /no file .*missing\.gguf/],
        [["--switches", '{"maxM":1}', "--port", "0"], /maxM/],
        [["--switches", '{"model":"x"}', "--port", "0"], /endpoint\.model does not exist/],
        [["--port", String(taken.address().port)], /EADDRINUSE.*another with --port/],
      ]) {
        const { status, stderr } = await runServe(...args);
        assert.equal(status, 1, args.join(" "));
        assert.match(stderr, said);
      }
    } finally {
      taken.close();
    }
  });
});
