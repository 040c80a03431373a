//! The budgets of `npm run size`, and the compressed copies in the package.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { compressPackage, downloadedFiles } from "../../scripts/compress.mjs";
import { root } from "../../scripts/process.mjs";
import { compare } from "../../scripts/size.mjs";

const at = (name) => join(root, "www/dist", name);

before(compressPackage);

test("each feature has a budget, and all together have one", () => {
  const budgets = [
    { feature: "page", files: ["a"], limit_bytes: 10 },
    { feature: "kernels", files: ["b", "c"], limit_bytes: 20 },
  ];
  const exceeded = (sizes, limit) =>
    compare(sizes, budgets, limit).exceeded.map((it) => it.feature);
  assert.deepEqual(exceeded({ a: 10, b: 20, c: 1 }, 30), []);
  assert.deepEqual(exceeded({ a: 11, b: 1, c: 1 }, 30), ["page"]);
  assert.deepEqual(exceeded({ a: 1, b: 1, c: 21 }, 30), ["kernels"]);
  assert.deepEqual(exceeded({ a: 10, b: 20, c: 20 }, 29), ["all"]);
  // A feature whose file is gone is none that fits.
  assert.deepEqual(exceeded({ b: 1, c: 1 }, 30), ["page", "all"]);
  assert.throws(() => compare({ a: 1, b: 1, c: 1, d: 1 }, budgets, 30), /no budget has d/);
});

test("compressed copies are those of the files", async () => {
  const names = downloadedFiles();
  assert.ok(names.includes("index.js") && names.includes("wasm/inpage_bg.wasm"));
  for (const name of names) {
    const content = readFileSync(at(name));
    assert.ok(brotliDecompressSync(readFileSync(at(`${name}.br`))).equals(content), name);
    assert.ok(gunzipSync(readFileSync(at(`${name}.gz`))).equals(content), name);
  }
});

test("a changed file is compressed again", async () => {
  const script = at("sw.js");
  const content = readFileSync(script);
  try {
    writeFileSync(script, `${content}\n`);
    await compressPackage();
    assert.equal(`${brotliDecompressSync(readFileSync(`${script}.br`))}`, `${content}\n`);
  } finally {
    writeFileSync(script, content);
    await compressPackage();
  }
  assert.ok(gunzipSync(readFileSync(`${script}.gz`)).equals(content));
});
