//! The downloads of a page by feature: Brotli sizes of scripts and wasm modules, and the size of the embedded model. Fails if a feature
//! or all together are over their budgets.

import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { CRATES } from "./build.mjs";
import { compressPackage, downloadedFiles } from "./compress.mjs";
import { isProgram, main, root } from "./process.mjs";

/**
 * The most bytes of each feature. A file belongs to one of them; of several `files` a page downloads one, so the largest counts.
 * Raise a budget in the change that needs it.
 */
export const BUDGETS = [
  { feature: "scripts of the page", files: ["index.js"], limit_bytes: 49_000 },
  { feature: "script of the worker", files: ["worker.js"], limit_bytes: 42_000 },
  { feature: "service worker", files: ["sw.js"], limit_bytes: 9_000 },
  { feature: "catalog", files: ["catalog/models.js"], limit_bytes: 6_500 },
  { feature: "inspectModel", files: ["wasm/inpage.js"], limit_bytes: 13_000 },
  { feature: "wasm module", files: ["wasm/inpage_bg.wasm"], limit_bytes: 1_950_000 },
  {
    feature: "kernels of the CPU",
    files: ["wasm/cpu_kernels.wasm", "wasm/cpu_kernels_simd.wasm"],
    limit_bytes: 29_500,
  },
];
/** The most bytes of all features together. */
export const LIMIT_BYTES = 2_092_000;
/** The most bytes of code in the wasm module, not compressed. A page compiles it before its model can start. */
const CODE_LIMIT_BYTES = 6_190_000;
/** The number of crates that are listed: those with the most code. */
const LISTED_CRATES = 25;
/** The embedded model. It is not compressed, because weights are nearly random, and downloaded only where an app uses it. */
const MODEL = {
  feature: "embedded model",
  files: ["../models/tales.gguf"],
  limit_bytes: 2_400_000,
};

/**
 * The part of its budget that each feature needs, and the features that exceed one. `sizes` maps files to bytes.
 * @throws Error for a file that belongs to no feature, which no budget would limit
 */
export function compare(sizes, budgets, limit_bytes) {
  const known = budgets.flatMap(({ files }) => files);
  const stray = Object.keys(sizes).filter((file) => !known.includes(file));
  if (stray.length > 0) throw new Error(`no budget has ${stray.join(", ")}: see BUDGETS`);
  const features = budgets.map(({ feature, files, limit_bytes }) => ({
    feature,
    bytes: Math.max(...files.map((file) => sizes[file])),
    limit_bytes,
  }));
  const total = features.reduce((sum, { bytes }) => sum + bytes, 0);
  features.push({ feature: "all", bytes: total, limit_bytes });
  return { features, exceeded: features.filter((it) => !(it.bytes <= it.limit_bytes)) };
}

async function measure(args) {
  await compressPackage();
  const dist = join(root, "www/dist");
  const bytesOf = (file) => statSync(join(dist, file)).size;
  const parts = downloadedFiles().map((part) => ({
    part,
    bytes: readFileSync(join(dist, part)).length,
    gzip_bytes: bytesOf(`${part}.gz`),
    brotli_bytes: bytesOf(`${part}.br`),
  }));
  const sizes = Object.fromEntries(parts.map(({ part, brotli_bytes }) => [part, brotli_bytes]));
  const scripts = compare(sizes, BUDGETS, LIMIT_BYTES);
  const [file] = MODEL.files;
  const model = compare({ [file]: bytesOf(file) }, [MODEL], MODEL.limit_bytes);
  const code = JSON.parse(readFileSync(join(dist, CRATES), "utf8"));
  const moduleCode = {
    feature: "code of the wasm module, not compressed",
    bytes: code.code_bytes,
    limit_bytes: CODE_LIMIT_BYTES,
  };
  const features = [...scripts.features, model.features[0], moduleCode];
  const exceeded = features.filter(({ bytes, limit_bytes }) => !(bytes <= limit_bytes));
  if (args.includes("--json")) {
    process.stdout.write(
      `${JSON.stringify({ parts, features, code, brotli_bytes: scripts.features.at(-1).bytes, limit_bytes: LIMIT_BYTES })}\n`,
    );
  } else {
    const column = (number) => String(number).padStart(9);
    for (const { part, bytes, gzip_bytes, brotli_bytes } of parts) {
      const sizes = `${column(brotli_bytes)} brotli ${column(gzip_bytes)} gzip ${column(bytes)} raw`;
      process.stdout.write(`${sizes}  ${part}\n`);
    }
    process.stdout.write(`\ncode of the wasm module by crate, ${code.functions} functions\n`);
    for (const { crate, functions, bytes } of code.crates.slice(0, LISTED_CRATES)) {
      process.stdout.write(`${column(bytes)} in ${String(functions).padStart(5)}  ${crate}\n`);
    }
    process.stdout.write("\n");
    for (const { feature, bytes, limit_bytes } of features) {
      const over = bytes > limit_bytes ? "  OVER BUDGET" : "";
      process.stdout.write(`${column(bytes)} of ${column(limit_bytes)}  ${feature}${over}\n`);
    }
  }
  return exceeded.length === 0 ? 0 : 1;
}

if (isProgram(import.meta.url)) await main(measure);
