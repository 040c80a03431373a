//! The budgets of `npm run size`, and the compressed copies in the package.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { compressPackage, downloadedFiles } from "../../scripts/compress.mjs";
import { root } from "../../scripts/process.mjs";
import { compare } from "../../scripts/size.mjs";
import { codeByCrate, crateOf, withoutNames } from "../../scripts/wasm_crates.mjs";

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

test("the crate of a function is the first in its name that is not the standard library", () => {
  for (const [name, crate] of [
    [
      "_ZN6inpage3api6routes4chat6answer28_$u7b$$u7b$closure$u7d$$u7d$17h46a0c452fc8fb8eaE",
      "inpage",
    ],
    ["_ZN4core3ptr34drop_in_place$LT$wgpu..Buffer$GT$17h68f7d88b3963f098E", "wgpu"],
    [
      "_ZN50_$LT$T$u20$as$u20$cubecl_runtime..id..DynKey$GT$8dyn_hash17h48f7d88b3963f098E",
      "cubecl_runtime",
    ],
    ["_ZN5alloc7raw_vec11finish_grow17h68f7d88b3963f098E", "alloc"],
    ["<regex_automata::Input as core::fmt::Debug>::fmt", "regex_automata"],
    ["memcpy", "other"],
  ]) {
    assert.equal(crateOf(name), crate, name);
  }
});

test("the code of a module is counted by crate, and its names can be removed", async () => {
  const section = (id, ...bytes) => [id, bytes.length, ...bytes];
  const text = (string) => [string.length, ...Buffer.from(string)];
  const END = 0x0b;
  const names = [...[0, ...text("log")], ...[1, ...text("one::f")], ...[2, ...text("two::g")]];
  const module = Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    // One type, a function without arguments and results.
    ...section(1, 1, 0x60, 0, 0),
    ...section(2, 1, ...text("env"), ...text("log"), 0, 0),
    ...section(3, 2, 0, 0),
    // The bodies: a function that does nothing, and one that calls the import.
    ...section(10, 2, ...[2, 0, END], ...[4, 0, 0x10, 0, END]),
    ...section(0, ...text("name"), ...[1, names.length + 1, 3, ...names]),
  ]);
  assert.ok(await WebAssembly.compile(module));
  assert.deepEqual(codeByCrate(module), {
    functions: 2,
    code_bytes: 9,
    crates: [
      { crate: "two", functions: 1, bytes: 5 },
      { crate: "one", functions: 1, bytes: 3 },
    ],
  });
  const stripped = withoutNames(module);
  assert.ok(await WebAssembly.compile(stripped));
  assert.ok(!stripped.includes("one::f"));
  assert.throws(() => codeByCrate(stripped), /no names/);
});
