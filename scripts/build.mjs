//! Builds the npm package into www/dist: the wasm module, its glue, the TypeScript and the service worker.
//! Each step is skipped while its inputs are what they were. `npm run build`; `-- --dev` compiles quicker, runs slower.

import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isProgram, main, mustRun, npmProgram, root, run, say, Remediable } from "./process.mjs";
import { setUpForBuild } from "./setup.mjs";
import { targetFolder } from "./setup/target.mjs";
import { digest, dropStamp, isFresh, writeStamp } from "./stamp.mjs";

const DIST = "www/dist";
const WASM = `${DIST}/wasm/inpage_bg.wasm`;
const GLUE = `${DIST}/wasm/inpage.js`;
const RUST_INPUTS = [
  "Cargo.toml",
  "Cargo.lock",
  ".cargo/config.toml",
  "build.rs",
  "src",
  "shaders",
];
const TYPESCRIPT_INPUTS = ["www/src", "tsconfig.json", "package-lock.json"];
// The types of the wasm module are written by hand; wasm-bindgen's own say less.
const GLUE_TYPES = "wasm/inpage.d.ts";

// What every browser with WebGPU has. `--all-features` writes modules that browsers reject.
const WASM_FEATURES = [
  "bulk-memory",
  "bulk-memory-opt",
  "call-indirect-overlong",
  "nontrapping-float-to-int",
  "sign-ext",
  "mutable-globals",
  "reference-types",
  "multivalue",
  "simd",
  "extended-const",
].map((feature) => `--enable-${feature}`);
// wasm-opt is itself compiled to wasm: a 21 MB module takes it 70 s at -O1, more than ten minutes at -O2.
const OPTIMIZE_LEVEL = "-O1";
const OPTIMIZE_LIMIT_MS = 10 * 60_000;

const seconds = (start) => `${((performance.now() - start) / 1000).toFixed(1)} s`;
const mebibytes = (path) => `${(statSync(join(root, path)).size / 2 ** 20).toFixed(2)} MiB`;

async function optimize(from, to) {
  const start = performance.now();
  const args = [OPTIMIZE_LEVEL, ...WASM_FEATURES, from, "-o", to];
  if ((await run(npmProgram("wasm-opt"), args, { timeout_ms: OPTIMIZE_LIMIT_MS })) === 0) {
    say(`  wasm-opt ${OPTIMIZE_LEVEL} ${seconds(start)}`);
    return;
  }
  say("  wasm-opt failed; the module stays as the compiler wrote it: correct, but larger");
  cpSync(from, to);
}

export async function buildWasm({ toolchain, bindgen }, dev) {
  const profile = dev ? "web-dev" : "web";
  const inputs = digest(
    RUST_INPUTS,
    toolchain.name,
    profile,
    WASM_FEATURES,
    OPTIMIZE_LEVEL,
    bindgen,
  );
  if (isFresh("wasm", inputs, [WASM, GLUE])) return;
  dropStamp("wasm");
  let start = performance.now();
  say(
    `build: wasm module (${toolchain.name}, profile ${profile}; the first time takes about ten minutes)`,
  );
  // Named alone, because cargo does no link-time optimization for a library that is an rlib as well.
  await mustRun(
    toolchain.cargo,
    [
      "rustc",
      "--lib",
      "--crate-type",
      "cdylib",
      "--locked",
      "--profile",
      profile,
      ...toolchain.args,
    ],
    {
      env: toolchain.env,
      remedy:
        "The compiler's messages stand above. If they name a missing crate, is crates.io reachable?",
    },
  );
  say(`  cargo ${seconds(start)}`);

  start = performance.now();
  const work = join(targetFolder(), "bindgen");
  rmSync(work, { recursive: true, force: true });
  const module = join(targetFolder(), "wasm32-unknown-unknown", profile, "inpage.wasm");
  await mustRun(bindgen, [
    "--target",
    "web",
    "--no-typescript",
    "--out-name",
    "inpage",
    "--out-dir",
    work,
    module,
  ]);
  say(`  wasm-bindgen ${seconds(start)}`);

  const from = join(work, "inpage_bg.wasm");
  mkdirSync(join(root, DIST, "wasm"), { recursive: true });
  if (dev) cpSync(from, join(root, WASM));
  else await optimize(from, join(root, WASM));
  cpSync(join(work, "inpage.js"), join(root, GLUE));
  say(`  ${WASM} ${mebibytes(WASM)}`);
  writeStamp("wasm", inputs);
}

function removeScripts() {
  const folder = join(root, DIST);
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder)) {
    if (entry !== "wasm") rmSync(join(folder, entry), { recursive: true, force: true });
  }
}

export async function buildTypeScript() {
  const inputs = digest(TYPESCRIPT_INPUTS);
  if (isFresh("typescript", inputs, [`${DIST}/index.js`, `${DIST}/sw.js`, `${DIST}/${GLUE_TYPES}`]))
    return;
  dropStamp("typescript");
  const start = performance.now();
  say("build: TypeScript and service worker");
  removeScripts();
  await mustRun(npmProgram("tsc"), [], { remedy: "Mend the TypeScript errors above." });
  mkdirSync(join(root, DIST, "wasm"), { recursive: true });
  cpSync(join(root, "www/src", GLUE_TYPES), join(root, DIST, GLUE_TYPES));
  // Hosts serve this one file; a classic script, because not every browser takes modules as service workers.
  const bundle = [
    "--bundle",
    "--format=iife",
    "--target=es2022",
    "--sourcemap",
    "--allow-overwrite",
    "--log-level=warning",
  ];
  await mustRun(npmProgram("esbuild"), ["www/src/sw.ts", ...bundle, `--outfile=${DIST}/sw.js`]);
  say(`  ${seconds(start)}`);
  writeStamp("typescript", inputs);
}

/** Builds what is out of date; `tools` comes from `setUpForBuild`. */
export async function build(tools, { dev = false } = {}) {
  if (!existsSync(join(root, "www/src/index.ts"))) {
    throw new Remediable(
      "www/src/index.ts is missing",
      "This folder is not a whole checkout of the repository.",
    );
  }
  await buildWasm(tools, dev);
  await buildTypeScript();
}

if (isProgram(import.meta.url)) {
  await main(async (args) => build(await setUpForBuild(), { dev: args.includes("--dev") }));
}
