//! The URLs that belong to the endpoint, and the form of sets of them in a script's URL. No browser is needed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const load = (file) => import(pathToFileURL(join(root, "www/dist", file)).href);
const { isRoute, routeAt, spelledByEndpoint } = await load("exchange/base_paths.js");
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
    "/v1/%2563ompletions",
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

/** Paths of one base path as callers may spell them, and as the endpoint does. */
const SPELLINGS = [
  ["//v1/completions", "/v1/completions"],
  ["/v1//completions", "/v1/completions"],
  ["/v1/completions//", "/v1/completions"],
  ["/v1/%63ompletions", "/v1/completions"],
  ["/%76%31/completions/", "/v1/completions"],
  ["/v1%2Fcompletions", "/v1/completions"],
  ["/v1/x/%2e%2e/completions", "/v1/completions"],
  ["/v1/x%2f..%2fcompletions", "/v1/completions"],
  ["/v1%5ccompletions", "/v1/completions"],
  ["/V1/Completions", "/v1/completions"],
  ["//v1//chat//completions?x=1", "/v1/chat/completions?x=1"],
  ["/v1/%6dodels", "/v1/models"],
  ["/v1//models/Org%2Fname%25x%3Fy", "/v1/models/Org/name%25x%3Fy"],
];

test("a route is found however its path is spelled, and the endpoint gets its own spelling", () => {
  for (const [spelling, path] of SPELLINGS) {
    const url = new URL(`https://site.example${spelling}`);
    assert.ok(isRoute(url, ["/v1"]), spelling);
    assert.equal(spelledByEndpoint(url.href, ["/v1/"]), `https://site.example${path}`);
    // Behind the doors that look for spellings, only the endpoint's own is a route. The URL parser resolves `%2e%2e`.
    if (url.pathname !== path) assert.equal(routeAt(url, ["/v1"]), undefined, spelling);
    assert.equal(`/v1/${routeAt(new URL(path, url), ["/v1"])}`, path.replace(/\?.*/, ""));
  }
  for (const path of ["/v1/models/a//b", "/v1/models/%61", "/v1/completions/", "/v1//users/me"]) {
    const url = `https://site.example${path}`;
    assert.equal(spelledByEndpoint(url, ["/v1"]), url);
  }
  const atRoot = (base) => spelledByEndpoint("https://site.example//%63ompletions", [base]);
  assert.deepEqual(["", "/"].map(atRoot), Array(2).fill("https://site.example/completions"));
});

test("another origin is covered only when it is named", () => {
  const served = { basePaths: ["/v1"], origins: ["https://api.example"], offline: false };
  const isCovered = (url) => urls.covers(served, new URL(url), "https://site.example");
  assert.ok(isCovered("https://site.example/v1/models"));
  assert.ok(isCovered("https://api.example/v1/models"));
  assert.ok(isCovered("https://api.example:443/v1/models"));
  assert.ok(isCovered("https://api.example//v1/%6dodels"));
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
