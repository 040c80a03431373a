//! Versions that are written in two places: the package's, by which tabs decide whether they may share an engine, and wasm-bindgen's.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bindgenVersion } from "../../scripts/setup/bindgen.mjs";
import { VERSION } from "../../www/dist/exchange/version.js";

test("the scripts and package.json name the same version", () => {
  const path = new URL("../../package.json", import.meta.url);
  assert.equal(VERSION, JSON.parse(readFileSync(path, "utf8")).version);
});

test("the program that writes the glue has the version of the workspace's wasm-bindgen", () => {
  assert.match(bindgenVersion(), /^0\.2\.\d+$/);
});
