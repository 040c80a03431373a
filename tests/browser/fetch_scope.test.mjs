//! The URLs that `engine.fetch` answers, by the place where it runs. No browser is needed.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const { isAnswered, urlOf } = await import(
  pathToFileURL(join(root, "www/dist/api/fetch_scope.js")).href
);
const { createFetchDoor } = await import(
  pathToFileURL(join(root, "www/dist/api/fetch_door.js")).href
);
const BASE_PATHS = ["/v1", "/openai/v1"];

/** Makes this program look like a page at `href`. */
function openPage(href, baseURI = href) {
  Object.assign(globalThis, { location: { href }, document: { baseURI } });
}
afterEach(() => {
  delete globalThis.location;
  delete globalThis.document;
});

/** The `inputs` that are answered by the engine. */
const answered = (inputs, origins = []) =>
  inputs.filter((input) => isAnswered(urlOf(input), BASE_PATHS, origins));

test("in a page: the routes of its own origin, and those of OpenAI", () => {
  openPage("https://site.example/app/");
  const own = ["/v1/completions", "https://site.example/openai/v1/models", "/v1/models/a/b"];
  const refused = ["/v1/audio/speech", "/v1/fine_tuning/jobs", "/v1/chat/completions/chatcmpl-1"];
  assert.deepEqual(answered([...own, ...refused]), [...own, ...refused]);
  const others = [
    ...[
      "/v1",
      "/v1/",
      "/v1/charges",
      "/v1/users/me",
      "/v1/files",
      "/v1/threads",
      "/v2/completions",
    ],
    ...[
      "v1/completions",
      "http://site.example/v1/completions",
      "https://site.example:8443/v1/models",
    ],
    ...["https://api.openai.com/v1/completions", "https://a.invalid/v1/completions"],
    ...["http://localhost/v1/models", "http://localhost:11434/v1/models"],
    ...["blob:https://site.example/v1/models", "data:text/plain,/v1/models"],
  ];
  assert.deepEqual(answered(others), []);
});

test("on the origins that the app lists: the same", () => {
  openPage("https://site.example/");
  const at = (path) => `https://api.openai.com${path}`;
  const origins = ["https://api.openai.com"];
  const ours = ["/v1/chat/completions", "/v1/images/generations"].map(at);
  assert.deepEqual(answered(ours, origins), ours);
  assert.deepEqual(answered(["/v1/charges", "/v1/files", "/completions"].map(at), origins), []);
  assert.deepEqual(answered(["https://other.example/v1/models"], origins), []);
});

test("however their paths are spelled", () => {
  openPage("https://site.example/");
  const spellings = [
    "//v1/completions",
    "/v1//chat/completions",
    "/v1/%63ompletions",
    "/V1/Models",
  ];
  const api = "https://api.openai.com";
  const ours = ["https://site.example", api].flatMap((origin) =>
    spellings.map((path) => origin + path),
  );
  assert.deepEqual(answered(ours, [api]), ours);
  assert.deepEqual(answered(ours), ours.slice(0, 4));
});

test("below the base paths of the placeholder: everything", () => {
  openPage("https://site.example/");
  const ours = ["http://inpage.invalid/v1/anything", "https://inpage.invalid/openai/v1/models"];
  assert.deepEqual(answered(ours), ours);
  assert.deepEqual(answered(["https://inpage.invalid/other", "https://x.inpage.invalid/v1"]), []);
});

test("where there is no page: the placeholder and localhost without a port", () => {
  const ours = [
    "https://localhost/v1/models",
    "http://localhost/v1/x",
    "https://inpage.invalid/v1",
  ];
  assert.deepEqual(answered(ours), ours);
  const others = ["http://localhost:8080/v1/models", "https://api.openai.com/v1/models"];
  assert.deepEqual(answered(others), []);
  assert.equal(urlOf("/v1/models"), undefined);
});

test("pages whose origin is opaque have their own site, too", () => {
  for (const [href, baseURI] of [
    ["file:///home/me/app.html"],
    ["app://bundle/index.html"],
    ["about:srcdoc", "https://site.example/embedding.html"],
  ]) {
    openPage(href, baseURI);
    assert.deepEqual(answered(["/v1/models", "/v1/charges"]), ["/v1/models"], href);
  }
});

test("what is not answered reaches the network untouched", async () => {
  openPage("https://site.example/");
  const seen = [];
  const network = async (...args) => {
    seen.push(args);
    return new Response("theirs");
  };
  const answer = async () => new Response("ours");
  const door = createFetchDoor(answer, { basePaths: BASE_PATHS, origins: [], network });
  const init = { method: "POST", body: new ReadableStream(), duplex: "half", dispatcher: {} };
  const request = new Request("https://shop.example/v1/charges", { method: "POST", body: "x" });
  for (const args of [
    ["https://shop.example/v1/charges", init],
    [request, undefined],
    [new URL("https://shop.example/v1/charges"), undefined],
    ["http://[", undefined],
  ]) {
    assert.equal(await (await door(...args)).text(), "theirs");
    const [input, given] = seen.pop();
    assert.equal(input, args[0]);
    assert.equal(given, args[1]);
  }
  assert.equal(request.bodyUsed, false);
  assert.equal(init.body.locked, false);
  assert.equal(await (await door("https://site.example/v1/models")).text(), "ours");
});
