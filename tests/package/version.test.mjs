//! The version by which tabs decide whether they may share an engine is that of the package.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { VERSION } from "../../www/dist/exchange/version.js";

test("the scripts and package.json name the same version", () => {
  const path = new URL("../../package.json", import.meta.url);
  assert.equal(VERSION, JSON.parse(readFileSync(path, "utf8")).version);
});
