//! Builds the npm package into www/dist: the wasm module, its glue, the TypeScript, the worker, the service worker and the notices.
//! A step is skipped if its inputs have not changed. Run by `npm run build`. `-- --dev` compiles faster, but the module runs
//! slower. `-- --test-hooks` builds what conformance cases need into www/dist-test, which is never shipped.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { withSharedMemory } from "./glue.mjs";
import { buildNotices, NOTICES } from "./notices.mjs";
import { isProgram, main, mustRun, npmProgram, root, run, say, Remediable } from "./process.mjs";
import { isKept, putIntoCache, takeFromCache } from "./setup/cache.mjs";
import { setUpForBuild } from "./setup.mjs";
import { targetFolder } from "./setup/target.mjs";
import { digest, dropStamp, isFresh, writeStamp } from "./stamp.mjs";
import { codeByCrate, withoutNames } from "./wasm_crates.mjs";

const DIST = "www/dist";
const TEST_DIST = "www/dist-test";
const BENCH_DIST = "www/dist-bench";
const WASM = "wasm/inpage_bg.wasm";
const GLUE = "wasm/inpage.js";
const CATALOG = "catalog/models.js";
/** The file with the bytes of code that each crate has in the module. It is not packed. */
export const CRATES = "wasm/inpage_bg.crates.json";
/** The kernels of the CPU device, by the target features they need. A page downloads one of them. */
const CPU_KERNELS = [
  ["wasm/cpu_kernels.wasm", "+simd128,+relaxed-simd"],
  ["wasm/cpu_kernels_simd.wasm", "+simd128"],
];
const MODULES = [WASM, ...CPU_KERNELS.map(([file]) => file)];
const CPU_KERNEL_INPUTS = ["Cargo.toml", "src/cpu"];
const RUST_INPUTS = [
  "Cargo.toml",
  "Cargo.lock",
  ".cargo/config.toml",
  "build.rs",
  "src",
  "shaders",
];
const TYPESCRIPT_INPUTS = ["www/src", "tsconfig.json", "package-lock.json", "scripts/build.mjs"];
// The types of the wasm module's glue are written by hand, because those of wasm-bindgen are less precise.
const WASM_TYPES = [GLUE.replace(/js$/, "d.ts"), ...MODULES.map((file) => `${file}.d.ts`)];

// Features that every browser with WebGPU supports. `--all-features` writes modules that browsers reject.
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
// wasm-opt is itself compiled to wasm. For a module of 21 MB it takes 70 s at -O1, but more than ten minutes at -O2.
const OPTIMIZE_LEVEL = "-O1";
const OPTIMIZE_LIMIT_MS = 10 * 60_000;

// Options of the last compiler call only, so that the compiled dependencies of the shipped module are reused. Tests with hooks and `--dev`
// use these. Generating stays nearly as fast, since the kernels of the CPU are modules of their own.
const QUICKEST = ["-C", "lto=thin", "-C", "opt-level=0", "-C", "codegen-units=16"];
// A module that is not downloaded may be larger. On two cores, these options take 140 s instead of 220 s, and save the
// 70 s of wasm-opt.
const LARGER = ["-C", "lto=thin", "-C", "codegen-units=16"];

// The futures of a load are large, and polled within each other: in an unoptimized build they take more than the compiler's 1 MiB.
const STACK_BYTES = 4 << 20;
const STACK = ["-C", `link-arg=-zstack-size=${STACK_BYTES}`];

const seconds = (start) => `${((performance.now() - start) / 1000).toFixed(1)} s`;
const mebibytes = (path) => `${(statSync(join(root, path)).size / 2 ** 20).toFixed(2)} MiB`;

/** Makes the module smaller, in place. */
async function optimize(module) {
  const start = performance.now();
  const optimized = `${module}.optimized`;
  const args = [OPTIMIZE_LEVEL, "-g", ...WASM_FEATURES, module, "-o", optimized];
  if ((await run(npmProgram("wasm-opt"), args, { timeout_ms: OPTIMIZE_LIMIT_MS })) === 0) {
    renameSync(optimized, module);
    say(`  wasm-opt ${OPTIMIZE_LEVEL} ${seconds(start)}`);
    return;
  }
  say("  wasm-opt failed; the unoptimized module is used, which is correct but larger");
}

/** Compiles the crate; returns the module that cargo wrote. */
async function compile(toolchain, features, linking, build) {
  const start = performance.now();
  say(`build: wasm module (${toolchain.name}; the first time takes several minutes)`);
  // The only crate type, because cargo does no link-time optimization for a library that is also an rlib.
  const args = ["rustc", "--lib", "--crate-type", "cdylib", "--locked", "--profile", "web"];
  args.push(...features, ...toolchain.args, "--", ...STACK, ...linking);
  await mustRun(toolchain.cargo, args, {
    // The build's name in cache entries: another build does not use those of this one.
    env: { ...toolchain.env, INPAGE_BUILD: build },
    remedy:
      "The compiler's messages are above. If they name a missing crate, is crates.io reachable?",
  });
  say(`  cargo ${seconds(start)}`);
  return join(targetFolder(), "wasm32-unknown-unknown/web/inpage.wasm");
}

/** Writes the glue code for a module; returns the folder with both. */
async function bind(bindgen, module) {
  const start = performance.now();
  const work = join(targetFolder(), "bindgen");
  rmSync(work, { recursive: true, force: true });
  const args = ["--target", "web", "--no-typescript", "--out-name", "inpage", "--out-dir", work];
  await mustRun(bindgen, [...args, module]);
  say(`  wasm-bindgen ${seconds(start)}`);
  return work;
}

/** Builds the wasm module and its glue code. A module that is not `shipped` is as fast, but larger. */
export async function buildWasm(
  { toolchain, bindgen },
  { dev = false, testHooks = false, replayBench = false, shipped = true } = {},
) {
  let [name, dist, features] = ["wasm", DIST, []];
  if (testHooks) [name, dist, features] = ["wasm-test", TEST_DIST, ["--features", "test-hooks"]];
  if (replayBench)
    [name, dist, features] = ["wasm-bench", BENCH_DIST, ["--features", "replay-bench"]];
  const files = [WASM, GLUE, CRATES].map((file) => `${dist}/${file}`);
  const inputsOf = (linking) =>
    digest(
      [...RUST_INPUTS, "scripts/glue.mjs", "scripts/wasm_crates.mjs"],
      toolchain.name,
      WASM_FEATURES,
      OPTIMIZE_LEVEL,
      STACK,
      linking,
    );
  let linking = testHooks ? QUICKEST : [];
  if (dev || !shipped) {
    // A better module that is already there is used.
    const better = inputsOf(linking);
    if (!isFresh(name, better, files) && !isKept(`${name}-${better}`))
      linking = dev ? QUICKEST : LARGER;
  }
  const module = cachedStep(name, inputsOf(linking), files, async () => {
    const build = `${name}-${inputsOf([])}`;
    const compiled = await compile(toolchain, features, linking, build);
    const work = await bind(await bindgen, compiled);
    const bound = join(work, "inpage_bg.wasm");
    if (linking.length === 0) await optimize(bound);
    const named = readFileSync(bound);
    writeFileSync(join(root, dist, CRATES), JSON.stringify(codeByCrate(named), null, 1));
    writeFileSync(join(root, dist, WASM), withoutNames(named));
    const glue = readFileSync(join(work, "inpage.js"), "utf8");
    writeFileSync(join(root, dist, GLUE), withSharedMemory(glue));
    say(`  ${dist}/${WASM} ${mebibytes(`${dist}/${WASM}`)}`);
  });
  // The compiler links the module on one core, for minutes: the kernels are compiled beside it.
  const kernels = replayBench ? undefined : buildCpuKernels({ toolchain });
  for (const step of await Promise.allSettled([module, kernels])) {
    if (step.status === "rejected") throw step.reason;
  }
  if (testHooks) {
    for (const [file] of CPU_KERNELS) cpSync(join(root, DIST, file), join(root, dist, file));
  }
}

// The module works in the memory of the main module: it has no memory and no data of its own, and JavaScript sets where its
// stack is.
const CPU_KERNEL_LINKING = [
  ...["--import-memory", "--export=__stack_pointer", "-zstack-size=0", "--no-stack-first"],
  "--strip-all",
].flatMap((argument) => ["-C", `link-arg=${argument}`]);

/** Builds the modules with the kernels of the CPU device into the package. */
async function buildCpuKernels({ toolchain }) {
  const files = CPU_KERNELS.map(([file]) => `${DIST}/${file}`);
  const inputs = digest(CPU_KERNEL_INPUTS, toolchain.name, CPU_KERNELS, CPU_KERNEL_LINKING);
  await cachedStep("cpu-kernels", inputs, files, async () => {
    for (const [file, features] of CPU_KERNELS) {
      const start = performance.now();
      say(`build: kernels of the CPU (${features})`);
      const args = ["rustc", "--package", "inpage-cpu", "--lib", "--crate-type", "cdylib"];
      args.push("--features", "module", "--locked", "--profile", "web", ...toolchain.args);
      args.push("--", ...CPU_KERNEL_LINKING);
      // Apart from the main module's artifacts, which have other target features.
      const target = join(targetFolder(), "cpu-kernels");
      await mustRun(toolchain.cargo, args, {
        env: {
          ...toolchain.env,
          CARGO_TARGET_DIR: target,
          CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: `-C target-feature=${features}`,
        },
        remedy: "The compiler's messages are above.",
      });
      const module = join(target, "wasm32-unknown-unknown/web/inpage_cpu.wasm");
      if (hasData(readFileSync(module))) {
        throw new Remediable(
          `${file} has data, which would overwrite the main module's when it is instantiated`,
          "A panic has a message, and a constant that is copied may be data: see src/cpu/module.rs.",
        );
      }
      cpSync(module, join(root, DIST, file));
      say(`  ${DIST}/${file} ${mebibytes(`${DIST}/${file}`)}, ${seconds(start)}`);
    }
  });
}

/** Whether a wasm module has a section of data. */
function hasData(module) {
  const DATA_SECTION = 11;
  let at = 8;
  while (at < module.length) {
    if (module[at++] === DATA_SECTION) return true;
    let [size, shift] = [0, 0];
    // LEB128
    do {
      size += (module[at] & 0x7f) * 2 ** shift;
      shift += 7;
    } while (module[at++] >= 0x80);
    at += size;
  }
  return false;
}

/** Runs `work`, which writes `files` into one folder, unless they are fresh or in the build cache. */
async function cachedStep(name, inputs, files, work) {
  if (isFresh(name, inputs, files)) return;
  dropStamp(name);
  const paths = files.map((file) => join(root, file));
  const folder = dirname(paths[0]);
  mkdirSync(folder, { recursive: true });
  const key = `${name}-${inputs}`;
  if (takeFromCache(key, folder)) {
    say(`build: ${name} is taken from the build cache`);
  } else {
    await work();
    putIntoCache(key, paths);
  }
  writeStamp(name, inputs);
}

function removeScripts() {
  const folder = join(root, DIST);
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder)) {
    // The wasm modules and the notices are written by steps of their own.
    if (entry !== "wasm" && entry !== basename(NOTICES))
      rmSync(join(folder, entry), { recursive: true, force: true });
  }
}

/** Copies the libraries that the demo uses, each a single module without imports, so that it is served without a bundler. */
function copyLibrariesOfDemo() {
  const folder = join(root, "www/demo/vendor");
  const library = join(root, "node_modules/marked/lib");
  mkdirSync(folder, { recursive: true });
  const script = readFileSync(join(library, "marked.esm.js"), "utf8");
  // The source map is not copied.
  writeFileSync(join(folder, "marked.js"), script.replace(/\n\/\/# sourceMappingURL=.*/, ""));
  cpSync(join(library, "marked.d.ts"), join(folder, "marked.d.ts"));
}

/** The scripts of the package. `worker.js` is there once the wasm module is built, whose glue it contains. */
export async function buildTypeScript() {
  copyLibrariesOfDemo();
  await compileTypeScript();
  await bundleWorker(DIST);
}

async function compileTypeScript() {
  const inputs = digest(TYPESCRIPT_INPUTS);
  const outputs = ["index.js", "node/index.js", "sw.js", ...WASM_TYPES];
  if (
    isFresh(
      "typescript",
      inputs,
      outputs.map((file) => `${DIST}/${file}`),
    )
  )
    return;
  dropStamp("typescript");
  const start = performance.now();
  say("build: TypeScript and service worker");
  removeScripts();
  // Code outside of browsers has other types. It imports the rest, which is written twice, with the same content.
  for (const project of [".", "www/src/node"]) {
    await mustRun(npmProgram("tsc"), ["-p", project], {
      remedy: "Fix the TypeScript errors above.",
    });
  }
  mkdirSync(join(root, DIST, "wasm"), { recursive: true });
  for (const file of WASM_TYPES) cpSync(join(root, "www/src", file), join(root, DIST, file));
  // A classic script, because not every browser supports modules as service workers.
  await bundle("www/src/sw.ts", `${DIST}/sw.js`, { format: "iife" });
  // A page without a bundler loads the catalog with one request.
  await bundle("www/src/catalog/models.ts", `${DIST}/${CATALOG}`);
  // Only `inspectModel` needs the glue, and only names of models need the catalog: they are imported then.
  const setup = ({ onResolve }) => {
    for (const file of [GLUE, CATALOG]) {
      const filter = new RegExp(`[\\\\/]${file.replace("/", "[\\\\/]").replace(".", "\\.")}$`);
      onResolve({ filter }, () => ({ path: `./${file}`, external: true, sideEffects: false }));
    }
  };
  await bundle("www/src/index.ts", `${DIST}/index.js`, { plugins: [{ name: "lazy", setup }] });
  say(`  ${seconds(start)}`);
  writeStamp("typescript", inputs);
}

/**
 * Makes a script a single file: a page without a bundler downloads one file instead of one for each module. Lines and comments are
 * left out, names are not.
 */
async function bundle(entry, outfile, options) {
  // Not at the top: the first set-up runs without the npm packages.
  const esbuild = await import("esbuild");
  await esbuild.build({
    entryPoints: [join(root, entry)],
    outfile: join(root, outfile),
    bundle: true,
    format: "esm",
    target: "es2022",
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    sourcemap: true,
    allowOverwrite: true,
    logLevel: "warning",
    ...options,
  });
}

/** The default module of wasm-bindgen's `init`. The worker always passes a module, and bundlers would look for this file. */
const DEFAULT_MODULE = "new URL('inpage_bg.wasm', import.meta.url)";

/**
 * Makes `worker.js` a single file, so that it can be copied and every bundler finds what it needs: only the wasm modules, by
 * addresses that are the same before and after.
 */
async function bundleWorker(dist) {
  const glue = join(root, dist, GLUE);
  if (!existsSync(glue)) return;
  const inputs = digest([...TYPESCRIPT_INPUTS, `${dist}/${GLUE}`]);
  const stamp = dist === DIST ? "worker" : "worker-test";
  const script = `${dist}/worker.js`;
  if (isFresh(stamp, inputs, [script])) return;
  dropStamp(stamp);
  const text = readFileSync(glue, "utf8");
  if (!text.includes(DEFAULT_MODULE)) {
    throw new Error(`the glue of wasm-bindgen has no ${DEFAULT_MODULE}`);
  }
  const contents = text.replace(DEFAULT_MODULE, "undefined");
  const setup = ({ onLoad }) =>
    onLoad({ filter: /[\\/]wasm[\\/]inpage\.js$/ }, () => ({ contents }));
  await bundle(`${dist}/worker/run.js`, script, { plugins: [{ name: "glue", setup }] });
  writeStamp(stamp, inputs);
}

/** Completes the package with hooks: adds the files that are shipped to the wasm module of the test build. */
function copyPackageForTests() {
  for (const entry of readdirSync(join(root, DIST))) {
    // The worker contains the glue of its module.
    if (entry === "wasm" || entry.startsWith("worker.js")) continue;
    cpSync(join(root, DIST, entry), join(root, TEST_DIST, entry), { recursive: true });
  }
}

/** Builds what is out of date; `tools` comes from `setUpForBuild`. */
export async function build(tools, { dev = false, testHooks = false, shipped = true } = {}) {
  if (!existsSync(join(root, "www/src/index.ts"))) {
    throw new Remediable(
      "www/src/index.ts is missing",
      "This folder is not a complete checkout of the repository.",
    );
  }
  await buildWasm(tools, { dev, testHooks, shipped });
  await buildTypeScript();
  await buildNotices();
  if (testHooks) {
    copyPackageForTests();
    await bundleWorker(TEST_DIST);
  }
}

if (isProgram(import.meta.url)) {
  await main(async (args) =>
    build(await setUpForBuild(), {
      dev: args.includes("--dev"),
      testHooks: args.includes("--test-hooks"),
    }),
  );
}
