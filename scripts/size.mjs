//! Brotli sizes of the files that a page downloads: the wasm module and each script. Fails above the limit.

import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { main, root, Remediable } from "./process.mjs";
import { filesUnder } from "./stamp.mjs";

export const LIMIT_BYTES = 3_000_000;
/** Downloaded instead of `cpu_kernels.wasm`, which is larger. */
const ALTERNATIVE = "wasm/cpu_kernels_simd.wasm";
/** What a page starts from. */
const SCRIPTS = ["index.js", "worker.js", "sw.js"];
const IMPORTS = /(?:\bfrom|\bimport\(?)\s*"(\.[^"]+\.js)"/g;

function brotliBytes(file) {
  const content = readFileSync(file);
  return brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  }).length;
}

/** The scripts that a page downloads for `scripts`: themselves and what they import. */
function withImports(scripts) {
  const found = new Set();
  const add = (file) => {
    if (found.has(file)) return;
    found.add(file);
    for (const [, path] of readFileSync(file, "utf8").matchAll(IMPORTS))
      add(join(dirname(file), path));
  };
  scripts.forEach(add);
  return [...found];
}

await main(async (args) => {
  const dist = join(root, "www/dist");
  const modules = filesUnder(join(dist, "wasm")).filter((file) => file.endsWith(".wasm"));
  const scripts = withImports(SCRIPTS.map((name) => join(dist, name)));
  const parts = [...modules, ...scripts].sort().map((file) => ({
    part: relative(dist, file),
    bytes: readFileSync(file).length,
    brotli_bytes: brotliBytes(file),
  }));
  if (!parts.some(({ part }) => part.endsWith(".wasm")))
    throw new Remediable("www/dist has no wasm module", "Run: npm run build");
  const downloaded = parts.filter(({ part }) => part !== ALTERNATIVE);
  const total = downloaded.reduce((sum, { brotli_bytes }) => sum + brotli_bytes, 0);
  if (args.includes("--json")) {
    process.stdout.write(
      `${JSON.stringify({ parts, brotli_bytes: total, limit_bytes: LIMIT_BYTES })}\n`,
    );
  } else {
    for (const { part, bytes, brotli_bytes } of parts) {
      process.stdout.write(
        `${String(brotli_bytes).padStart(9)} brotli ${String(bytes).padStart(9)} raw  ${part}\n`,
      );
    }
    process.stdout.write(`${String(total).padStart(9)} brotli of ${LIMIT_BYTES} allowed\n`);
  }
  return total <= LIMIT_BYTES ? 0 : 1;
});
