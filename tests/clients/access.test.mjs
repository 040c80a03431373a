//! The web pages that the native server answers. Pages of other sites must not use it, neither by CORS nor by DNS rebinding.

import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { PROMPT, startEndpoint } from "./endpoint.mjs";

describe("the native server", () => {
  let endpoint;

  before(async () => {
    endpoint = await startEndpoint();
  });
  after(() => endpoint?.close());

  /** Like `fetch`, which does not let the caller set Host and Origin. */
  function complete(headers) {
    const body = JSON.stringify({ model: "default", prompt: PROMPT, max_tokens: 1 });
    const options = {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
    };
    return new Promise((resolve, reject) => {
      const sent = request(`${endpoint.origin}/v1/completions`, options, async (answer) => {
        const chunks = await answer.toArray();
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: answer.statusCode,
          headers: answer.headers,
          answer: JSON.parse(text),
        });
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  test("answers programs and pages of this machine", async () => {
    for (const headers of [{}, { origin: "http://localhost:5173" }, { host: "localhost:9" }]) {
      const { status, answer } = await complete(headers);
      assert.equal(status, 200, JSON.stringify(headers));
      assert.equal(answer.object, "text_completion");
    }
  });

  test("refuses another name that resolves to this machine, and says what allows it", async () => {
    const { status, answer } = await complete({ host: "evil.example:8080" });
    assert.equal(status, 403);
    assert.match(answer.error.message, /--allow-host evil\.example allows/);
  });

  test("refuses pages of other origins, without CORS headers", async () => {
    for (const origin of ["https://evil.example", "null"]) {
      const { status, headers, answer } = await complete({ origin });
      assert.equal(status, 403);
      assert.equal(headers["access-control-allow-origin"], undefined);
      assert.equal(answer.error.code, "origin_not_allowed");
    }
  });
});
