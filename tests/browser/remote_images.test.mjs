//! Images at URLs of the network: with the option they are fetched under the page's rules, within bounds, and until the request
//! is aborted; without it they are refused.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { png } from "./image_files.mjs";

const SIDE = 32;
const data = Buffer.from(Array.from({ length: 3 * SIDE * SIDE }, (_, i) => (i * 7) % 256));
const file = png({ width: SIDE, height: SIDE, data });
const dataUrl = `data:image/png;base64,${file.toString("base64")}`;
/** The request with the image as a data URL fits into a body of this size. */
const MAX_BODY_BYTES = 2 * file.length;

describe("images at URLs", {
  skip: !wasmIsBuilt && "skipped: the wasm module is not built",
}, () => {
  let harness;
  let other;
  let page;

  before(async () => {
    other = await startOther();
    harness = await startHarness({
      mounts: { "/images/": join(root, "tests/parity/images/") },
    });
    page = await harness.open();
    const failure = await page.evaluate(
      (maxBodyBytes) =>
        caught(async () => {
          const options = {
            model: "/images/gemma3.gguf",
            projector: "/images/gemma3.mmproj.gguf",
            ...{ device: "cpu", threads: 1, shared: false },
          };
          window.engine = await inpage.createEngine({
            ...options,
            endpoint: { remoteImages: true, maxBodyBytes },
          });
          window.strict = await inpage.createEngine(options);
          window.ask = async (engine, images, options) => {
            const body = { model: "default", prompt: "<image>What is it?", images };
            const request = { ...body, max_tokens: 4, temperature: 0, return_token_ids: true };
            const { value, ...failure } = await caught(() =>
              engine.completions.create(request, options),
            );
            return value === undefined ? failure : { ids: value.choices[0].token_ids };
          };
        }),
      MAX_BODY_BYTES,
    );
    assert.equal(failure.message, undefined);
  });
  after(async () => {
    await harness?.close();
    await other?.close();
  });

  const ask = (...images) => page.evaluate((images) => ask(engine, images), images);

  test("one of another origin gives the same answer as its data URL", async () => {
    const expected = await ask(dataUrl);
    assert.equal(expected.ids?.length, 4, expected.message);
    assert.deepEqual(await ask(`${other.origin}/cors.png`), expected);
    // Redirects are followed under the same rules.
    assert.deepEqual(await ask(`${other.origin}/moved.png`), expected);
  });

  test("neither cookies nor the page's address are sent", async () => {
    await page.context().addCookies([{ name: "secret", value: "1", url: other.origin }]);
    other.requests.length = 0;
    await ask(`${other.origin}/cors.png`);
    const [{ cookie, referer, origin }] = other.requests;
    assert.deepEqual([cookie, referer, origin], [undefined, undefined, harness.origin]);
  });

  test("messages and plain fetch take them, too", async () => {
    const answers = await page.evaluate(async (url) => {
      const content = [
        { type: "image_url", image_url: { url } },
        { type: "text", text: "What is it?" },
      ];
      const messages = [{ role: "user", content }];
      const body = { model: "default", messages, max_tokens: 2, temperature: 0 };
      const { usage } = await engine.chat.completions.create(body);
      const serving = inpage.serveFromPage(engine);
      await serving.ready;
      const response = await fetch("/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      await serving.stop();
      return [usage.prompt_tokens, (await response.json()).usage?.prompt_tokens];
    }, `${other.origin}/cors.png`);
    assert.ok(answers[0] > 4);
    assert.equal(answers[1], answers[0]);
  });

  test("what cannot be fetched is named with its URL and the reason", async () => {
    for (const [path, reason] of [
      ["/private.png", /could not be fetched.*Access-Control-Allow-Origin.*connect-src/],
      ["/missing.png", /status 404/],
      ["/large.png", /more than \d+ bytes/],
      ["/endless.png", /more than \d+ bytes/],
    ]) {
      const url = other.origin + path;
      const { status, code, param, message } = await ask(url);
      assert.deepEqual([status, code, param], [400, "invalid_value", "images"], message);
      assert.match(message, reason);
      assert.ok(message.includes(url), message);
    }
    const { message } = await ask(`${other.origin}/text.png`);
    assert.match(message, /none of png/);
  });

  test("aborting a request ends that for its image", async () => {
    const asked = other.silent();
    await page.evaluate((url) => {
      window.controller = new AbortController();
      window.answer = ask(engine, [url], { signal: controller.signal });
    }, `${other.origin}/silent.png`);
    const response = await asked;
    const closed = response.closed ? undefined : once(response, "close");
    const failure = await page.evaluate(() => {
      controller.abort();
      return answer;
    });
    assert.equal(failure.name, "AbortError");
    await closed;
    assert.equal((await ask(dataUrl)).ids.length, 4);
  });

  test("without the option they are refused, and nothing is fetched", async () => {
    other.requests.length = 0;
    const url = `${other.origin}/cors.png`;
    const { status, code, message } = await page.evaluate((url) => ask(strict, [url]), url);
    assert.deepEqual([status, code], [400, "invalid_value"]);
    assert.match(message, /remoteImages: true/);
    assert.deepEqual(other.requests, []);
  });
});

/** A server of another origin. Most of its files may be read by all pages. */
async function startOther() {
  const requests = [];
  let onSilent = () => {};
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    requests.push(request.headers);
    if (path !== "/private.png") response.setHeader("access-control-allow-origin", "*");
    switch (path) {
      case "/cors.png":
      case "/private.png":
        return response.end(file);
      case "/moved.png":
        response.writeHead(302, { location: "/cors.png" });
        return response.end();
      case "/large.png":
        return response.end(Buffer.alloc(MAX_BODY_BYTES + 1));
      case "/text.png":
        return response.end("hello");
      case "/endless.png": {
        const more = () => response.write(Buffer.alloc(4096)) && setImmediate(more);
        response.on("drain", more);
        return more();
      }
      case "/silent.png":
        response.flushHeaders();
        return onSilent(response);
      default:
        response.writeHead(404);
        return response.end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    requests,
    /** Resolves when `/silent.png` is asked for, with its response. */
    silent: () =>
      new Promise((resolve) => {
        onSilent = resolve;
      }),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
