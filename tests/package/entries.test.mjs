//! The entries of the package: types and exports as the checkers of packages want them, and scripts that are single files.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { installBundlers, programOf } from "./bundlers.mjs";
import { pack, run } from "./packed.mjs";

test("worker.js and sw.js import nothing, and the worker names the wasm modules beside it", () => {
  for (const [name, files] of [
    ["worker.js", ["cpu_kernels.wasm", "cpu_kernels_simd.wasm", "inpage_bg.wasm"]],
    ["sw.js", []],
  ]) {
    const text = readFileSync(join(root, "www/dist", name), "utf8");
    assert.doesNotMatch(text, /(?:^|[;}])\s*(?:import|export)\s*[{*"'\w]|\bimport\(/m, name);
    const named = [...text.matchAll(/new URL\(\s*"([^"]+)",\s*import\.meta\.url/g)].map(
      ([, path]) => path,
    );
    assert.deepEqual(
      named.sort(),
      files.map((file) => `./wasm/${file}`),
      name,
    );
    assert.equal(text.match(/import\.meta/g)?.length ?? 0, files.length, name);
  }
});

const skip = !(await installBundlers()) && "skipped: the checkers cannot be installed";

test("publint and attw find nothing", { skip }, () => {
  const folder = temporaryFolder("inpage-entries-");
  const archive = join(folder, pack(folder).filename);
  // They throw with their findings.
  run(programOf("publint"), ["run", archive, "--strict"], folder);
  run(programOf("attw"), [archive, "--profile", "esm-only", "--no-color"], folder);
});
