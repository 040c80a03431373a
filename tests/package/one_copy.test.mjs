//! The entry of pages is a bundle. Other entries use its modules through it: a second copy would not know its engines.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/process.mjs";

const dist = join(root, "www/dist");
const IMPORTS = /(?:\bfrom|\bimport\(?)\s*"(\.[^"]+\.js)"/g;
/** Modules without state. */
const PURE = [
  ...["api/growing_message.js", "api/pixels.js", "api/turn.js"],
  ...["catalog/models.js", "exchange/abort.js", "options/options_key.js"],
];

/** The files of `dist` that `entry` loads besides the bundle. */
function modulesOf(entry) {
  const found = new Set();
  const add = (file) => {
    if (found.has(file) || file === "index.js") return;
    found.add(file);
    for (const [, path] of readFileSync(join(dist, file), "utf8").matchAll(IMPORTS)) {
      add(relative(dist, join(dist, dirname(file), path)).replaceAll("\\", "/"));
    }
  };
  add(entry);
  return [...found];
}

test("entries for pages have the modules of the page once", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.entries(exports)
    .filter(([name]) => name !== ".")
    .flatMap(([, { browser }]) => browser ?? []);
  assert.ok(entries.length > 1);
  for (const entry of entries) {
    const modules = modulesOf(entry.slice("./www/dist/".length));
    const own = `${dirname(entry.slice("./www/dist/".length))}/`;
    const copies = modules.filter((file) => !file.startsWith(own));
    assert.deepEqual(
      copies.filter((file) => !PURE.includes(file)),
      [],
      entry,
    );
  }
});
