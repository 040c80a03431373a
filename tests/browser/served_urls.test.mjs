//! Which URLs belong to the endpoint, and how sets of them are written into a script's URL. No browser is needed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const load = (file) => import(pathToFileURL(join(root, "www/dist", file)).href);
const { isRoute } = await load("exchange/base_paths.js");
const urls = await load("exchange/served_urls.js");

test("only the endpoint's routes belong to it", () => {
  const isOne = (path) => isRoute(new URL(path, "https://site.example"), ["/v1", "/openai/v1/"]);
  for (const path of [
    "/v1/completions",
    "/v1/completions/",
    "/v1/completions?trace=1#x",
    "/openai/v1/completions",
    "/v1/models",
    "/v1/models/",
    "/v1/models/org/name",
    "/v1/models/org%2Fname",
    "/v1/chat/completions",
    "/v1/responses",
  ]) {
    assert.ok(isOne(path), path);
  }
  for (const path of [
    "/",
    "/v1",
    "/v1/",
    "/v1/users/me",
    "/v1/completionsx",
    "/v1/completions//",
    "/v1/chat",
    "/v1/chat/completions/x",
    "/v1/responses/resp_1",
    "/v1completions",
    "/v2/completions",
    "/api/v1/completions",
    "/?x=/v1/completions",
    "/completions",
  ]) {
    assert.ok(!isOne(path), path);
  }
  assert.ok(isRoute(new URL("https://site.example/completions"), ["/"]));
});

test("another origin is covered only when it is named", () => {
  const served = { basePaths: ["/v1"], origins: ["https://api.example"], offline: false };
  const isCovered = (url) => urls.covers(served, new URL(url), "https://site.example");
  assert.ok(isCovered("https://site.example/v1/models"));
  assert.ok(isCovered("https://api.example/v1/models"));
  assert.ok(isCovered("https://api.example:443/v1/models"));
  assert.ok(!isCovered("http://api.example/v1/models"));
  assert.ok(!isCovered("https://api.example/v1/files"));
  assert.ok(!isCovered("https://other.example/v1/models"));
});

test("origins and base paths that could never match are refused", () => {
  assert.deepEqual(urls.normalizedOrigins(["https://API.example/", "https://a.example:443"]), [
    "https://api.example",
    "https://a.example",
  ]);
  for (const origin of ["api.example", "https://api.example/v1", "", "data:,x"]) {
    assert.throws(() => urls.normalizedOrigins(["https://a.example", origin]), /origins\[1\] is/);
  }
  assert.deepEqual(urls.normalizedBasePaths(["/v1/", "/"]), ["/v1", ""]);
  assert.throws(() => urls.normalizedBasePaths(["v1"]), /basePaths\[0\] is "v1"/);
});

test("a script's query names a set and keeps other parameters", () => {
  const script = new URL("https://site.example/sw.js?build=7&base=/old");
  const set = urls.unionOf([
    { basePaths: ["/v1"], origins: [], offline: true },
    { basePaths: ["/b", "/v1"], origins: ["https://api.example"], offline: false },
  ]);
  const named = urls.withQuery(script, set);
  assert.equal(named.searchParams.get("build"), "7");
  assert.deepEqual(urls.fromQuery(named), {
    basePaths: ["/b", "/v1"],
    origins: ["https://api.example"],
    offline: true,
  });
  assert.ok(urls.includesAll(set, { basePaths: ["/v1"], origins: [], offline: true }));
  assert.ok(!urls.includesAll(set, { basePaths: ["/v1"], origins: ["https://b.example"] }));
  assert.deepEqual(urls.fromQuery(new URL("https://site.example/sw.js")), {
    basePaths: undefined,
    origins: undefined,
    offline: false,
  });
});
