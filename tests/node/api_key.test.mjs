//! The sources of the key of `inpage serve`, and the errors for keys that cannot be used.

import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { windows } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { apiKeyOf } from "../../www/bin/api_key.mjs";
import { runServe, startServe } from "./serve_process.mjs";

const folder = temporaryFolder("inpage-api-key-");

function fileWith(text, mode = 0o600) {
  const path = join(folder, "key");
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const silent = (message) => assert.fail(message);
const fromFile = (text) => apiKeyOf({ "api-key-file": fileWith(text) }, {}, silent);

test("an argument, a file and the environment, in this order", () => {
  const environment = { INPAGE_API_KEY: "env" };
  assert.equal(apiKeyOf({}, {}, silent), undefined);
  assert.equal(apiKeyOf({}, environment, silent), "env");
  assert.equal(apiKeyOf({ "api-key": "arg" }, environment, silent), "arg");
  const options = { "api-key-file": fileWith("file\n") };
  assert.equal(apiKeyOf(options, environment, silent), "file");
  assert.throws(() => apiKeyOf({ ...options, "api-key": "arg" }, {}, silent), /exclude each other/);
});

test("one line end after the key does not count", () => {
  for (const text of ["a key", "a key\n", "a key\r\n"]) assert.equal(fromFile(text), "a key");
});

test("a key that no request could have is refused, and not shown", () => {
  for (const text of ["", "\n", "\r\n"]) assert.throws(() => fromFile(text), /key is empty$/);
  for (const text of ["secret\nsecret", "secret\n\n", " secret", "secret ", "s\u00e9cret"]) {
    assert.throws(
      () => fromFile(text),
      ({ message }) => /one line of ASCII/.test(message) && !message.includes("cret"),
    );
  }
  assert.throws(() => apiKeyOf({ "api-key": "" }, {}, silent), /^Error: --api-key is empty$/);
  assert.throws(() => apiKeyOf({}, { INPAGE_API_KEY: "" }, silent), /INPAGE_API_KEY is empty/);
  const missing = join(folder, "missing");
  assert.throws(() => apiKeyOf({ "api-key-file": missing }, {}, silent), /missing: ENOENT/);
});

test("a file that every user can read is used, with a warning", { skip: windows }, () => {
  const warnings = [];
  const options = { "api-key-file": fileWith("k\n", 0o644) };
  assert.equal(
    apiKeyOf(options, {}, (message) => warnings.push(message)),
    "k",
  );
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /every user of this machine can read .*chmod 600/);
});

test("the command takes the key from a file and from the environment", async () => {
  const wrong = await runServe("--api-key-file", join(folder, "missing"));
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /inpage serve: --api-key-file .*missing: ENOENT/);
  const file = fileWith("from-file\n");
  process.env.INPAGE_API_KEY = "from-environment";
  try {
    for (const [args, key] of [
      [["--api-key-file", file], "from-file"],
      [[], "from-environment"],
      [["--switches", '{"apiKey":"switch"}'], "switch"],
    ]) {
      const server = await startServe(...args);
      const status = async (authorization) =>
        (await fetch(`${server.origin}/v1/models`, { headers: { authorization } })).status;
      try {
        assert.deepEqual([await status(`Bearer ${key}`), await status("Bearer x")], [200, 401]);
      } finally {
        await server.stop();
      }
    }
  } finally {
    delete process.env.INPAGE_API_KEY;
  }
});
