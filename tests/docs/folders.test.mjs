//! The table of the folders of www/src in ARCHITECTURE.md is what their files import, and no folder uses one above it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { filesUnder } from "../../scripts/stamp.mjs";

const src = join(root, "www/src");
const IMPORTS = /(?:\bfrom|\bimport|\bimport\()\s*"(\.[^"]+)\.js"/g;
const quoted = (cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name);

/** The rows of the table from top to bottom: the folders and files of each, and the first name of each row that it imports. */
function rows() {
  const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const [, table] = page.split("\n| in `www/src` |");
  const lines = table.split("\n\n")[0].split("\n").slice(2);
  return lines.map((line) => {
    const [, places, , , imports] = line.split("|");
    return { places: quoted(places), imports: quoted(imports) };
  });
}

/** The paths of scripts below www/src without their ending, with what each imports. */
function scripts() {
  return filesUnder(src)
    .filter((file) => file.endsWith(".ts"))
    .map((file) => {
      const path = relative(src, file).replaceAll("\\", "/");
      const found = readFileSync(file, "utf8").matchAll(IMPORTS);
      const imports = [...found].map(([, name]) => posix.join(dirname(path), name));
      return { path: path.replace(/(\.d)?\.ts$/, ""), imports };
    });
}

/** The place of a script: its folder, or the script itself where it is in none. */
const placeOf = (path) => (path.includes("/") ? dirname(path) : `${path}.ts`);

test("the table of the folders has their imports, which point down", () => {
  const table = rows();
  const all = scripts();
  const rowOf = (path) => {
    const row = table.findIndex(({ places }) => places.includes(placeOf(path)));
    assert.ok(row >= 0, `${placeOf(path)} has no row`);
    return row;
  };
  const found = table.map(() => new Set());
  for (const { path, imports } of all) {
    for (const imported of imports) {
      const [from, to] = [rowOf(path), rowOf(imported)];
      assert.ok(from <= to, `${path} imports ${imported}, which is above it`);
      if (from !== to) found[from].add(table[to].places[0]);
    }
  }
  assert.ok(all.length > 100, `only ${all.length} scripts`);
  for (const [row, { places, imports }] of table.entries()) {
    assert.deepEqual([...found[row]].sort(), imports.sort(), `imports of ${places[0]}`);
    for (const place of places) {
      assert.ok(
        all.some(({ path }) => placeOf(path) === place),
        `${place} does not exist`,
      );
    }
  }
});
