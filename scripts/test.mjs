//! `npm test`: runs every tier of tests except `NAMED_TIERS`. `npm test -- rust browser` runs the named ones,
//! `npm run test:rust -- MODULE` the tests of a module alone. Prints the seconds of every step and a last line "N passed, N
//! failed". Fails if anything failed. The checks themselves are in the tests. Longer than other files: every tier is an entry of one table.

import { existsSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { provideRealModels } from "../tests/real/models.mjs";
import { buildTypeScript, buildWasm } from "./build.mjs";
import { failedTests } from "./failed_tests.mjs";
import { findFirefox } from "./firefox.mjs";
import { buildFuzzer, fuzzAll, obstacle, targets } from "./fuzz.mjs";
import { buildNotices } from "./notices.mjs";
import { main, npmProgram, Remediable, root, run, say, TIMED_OUT, which } from "./process.mjs";
import { installPackages, isDebian } from "./setup/apt.mjs";
import { provideBrowser, provideHeadlessShell } from "./setup/browser.mjs";
import { provideNpmPackages } from "./setup/npm.mjs";
import { requireRust } from "./setup/rust.mjs";
import { provideVulkan } from "./setup/vulkan.mjs";
import { requireNode, setUpForBuild } from "./setup.mjs";
import { filesIn, GPU_TESTS, rustTestNames } from "./test_names.mjs";
import { findWebKit } from "./webkit.mjs";

/** Limits, so that nothing hangs forever. The longest step is a first build on a slow machine. */
const PROGRAM_LIMIT_MS = 40 * 60_000;
const NODE_TEST_LIMIT_MS = 5 * 60_000;
/** A test program in Rust that prints nothing for so long hangs. */
const RUST_SILENCE_LIMIT_MS = 5 * 60_000;
/** The same limits at low priority, beside tests that keep all processors busy, where a test may compile shaders for long. */
const BACKGROUND_LIMIT_MS = 80 * 60_000;
const BACKGROUND_SILENCE_LIMIT_MS = 40 * 60_000;
/** For a browser without which its tier is skipped. */
const INSTALL_LIMIT_MS = 3 * 60_000;
/**
 * The whole run may take this long, if it is set: then tests of the GPU and fuzzing are cut off, and the run says so. A machine that ends a run at
 * a limit of its own would report nothing.
 */
const limit_ms = Number(process.env.INPAGE_TEST_MINUTES ?? Number.POSITIVE_INFINITY) * 60_000;
const start_ms = performance.now();
/** Tests of the GPU do not begin with less time. */
const LEAST_MS = 30_000;
/** Tolerance for a timer that fires early. */
const TIMER_MS = 1000;
/** Long enough to find what a change breaks for inputs like those of the corpus. `npm run fuzz` takes longer. */
const FUZZ_SECONDS = 20;

/** Milliseconds that all processors of the machine were idle, and that passed on them, since it started. */
function processorTimes() {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, it) => sum + it.idle, 0);
  const all = times.reduce((sum, it) => sum + Object.values(it).reduce((a, b) => a + b, 0), 0);
  return { idle, all };
}

/** Counts of one tier. `skipped` counts tests that report themselves as skipped. */
class Tally {
  passed = 0;
  failed = 0;
  skipped = 0;
  failures = [];
  /** Names of steps that the end of the run has cut off. */
  cuts = [];
  /** `[name, seconds, share of the processors' time that was not idle]` of every step. */
  steps = [];

  /** Runs a step of the tier and records how long it took. */
  async time(name, work) {
    say(`\n--- ${name}`);
    const [start, before] = [performance.now(), processorTimes()];
    try {
      return await work();
    } finally {
      const after = processorTimes();
      const busy = 1 - (after.idle - before.idle) / Math.max(after.all - before.all, 1);
      this.steps.push([name, (performance.now() - start) / 1000, busy]);
    }
  }

  /** A step that did not end, because the time of the run is over. */
  cut(name) {
    say(`${name}: cut off after ${process.env.INPAGE_TEST_MINUTES} minutes of INPAGE_TEST_MINUTES`);
    this.skipped += 1;
    this.cuts.push(name);
  }

  fail(name) {
    this.failed += 1;
    this.failures.push(name);
  }

  /** Adds the counts and steps of another tally. */
  add(other) {
    this.passed += other.passed;
    this.failed += other.failed;
    this.skipped += other.skipped;
    this.failures.push(...other.failures);
    this.cuts.push(...other.cuts);
    this.steps.push(...other.steps);
  }

  /** A check that is one program. It passes if the program succeeds. */
  async check(name, program, args, options = {}) {
    const status = await this.time(name, () =>
      run(program, args, { timeout_ms: PROGRAM_LIMIT_MS, ...options }),
    );
    if (status === 0) {
      this.passed += 1;
    } else {
      this.fail(name);
    }
  }

  /** A step that throws if it fails, which ends the tier. */
  async build(name, work) {
    const result = await this.time(name, work);
    this.passed += 1;
    return result;
  }

  /**
   * A program that prints its own counts. `patterns` find them in its output. A program that fails without
   * counting a failure (it did not compile, or it crashed) counts as one failure. A program is cut off after
   * `share` of the time that the run may take, and counts with the tests that it has ended. The output of a program in the
   * background, or `beside` another one, is printed at its end, so that it does not mix with others.
   */
  async count(name, program, args, patterns, { share, beside = false, ...options } = {}) {
    let output = "";
    const isLate = beside || options.background;
    const end_ms = share === undefined ? Number.POSITIVE_INFINITY : start_ms + share * limit_ms;
    const left_ms = end_ms - performance.now();
    if (left_ms < LEAST_MS) return this.cut(name);
    const most_ms = options.background ? BACKGROUND_LIMIT_MS : PROGRAM_LIMIT_MS;
    const status = await this.time(name, () =>
      run(program, args, {
        timeout_ms: Math.min(most_ms, left_ms),
        ...options,
        onOutput(text) {
          output += text;
          if (!isLate) process.stderr.write(text);
        },
      }),
    );
    if (isLate) process.stderr.write(output);
    const sum = (pattern) =>
      [...output.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);
    // A program that hangs is ended before `end_ms`, and fails.
    if (status === TIMED_OUT && performance.now() > end_ms - TIMER_MS) {
      this.passed += (output.match(/^test .* ok$/gm) ?? []).length;
      for (const test of failedTests(output)) this.fail(`${name}: ${test}`);
      return this.cut(name);
    }
    const [passed, failed] = [sum(patterns.passed), sum(patterns.failed)];
    this.passed += passed;
    this.skipped += sum(patterns.skipped);
    if (status !== 0 || failed > 0) {
      const tests = failedTests(output);
      this.failures.push(...(tests.length > 0 ? tests.map((it) => `${name}: ${it}`) : [name]));
      this.failed += Math.max(failed, 1);
    } else if (passed === 0 && !options.mayBeEmpty) {
      say(`${name}: no test ran`);
      this.fail(`${name} (no test ran)`);
    }
  }
}

const CARGO_COUNTS = {
  passed: /^test result: .*? (\d+) passed/gm,
  failed: /^test result: .*? (\d+) failed/gm,
  skipped: /^test result: .*? (\d+) ignored/gm,
};
const NODE_COUNTS = {
  passed: /^# pass (\d+)/gm,
  failed: /^# fail (\d+)/gm,
  skipped: /^# skipped (\d+)/gm,
};

const CONFORMANCE_COUNTS = {
  passed: /^(\d+) passed, \d+ failed$/gm,
  failed: /^\d+ passed, (\d+) failed$/gm,
  skipped: /^(\d+) skipped$/gm,
};

const cargoTest = (tally, name, args, env, options = {}) =>
  tally.count(name, "cargo", ["test", "--locked", ...args], CARGO_COUNTS, {
    ...options,
    env,
    silence_ms: options.background ? BACKGROUND_SILENCE_LIMIT_MS : RUST_SILENCE_LIMIT_MS,
  });

async function gpuTests(tally, name, options) {
  await requireRust();
  await cargoTest(tally, name, [...HOOKS, "--test", name], await gpuEnv(), options);
}

/** The tally of `parity` while it runs in the background, once it has ended. */
let parityInBackground;

/**
 * Starts `parity` at low priority, as soon as the module of the package is built: the tiers before it leave processor time. The
 * program is compiled.
 */
function startParity() {
  const tally = new Tally();
  parityInBackground = moduleBuilt
    .then(() => gpuTests(tally, "parity", { share: 1, background: true }))
    .then(() => tally);
  // The tier reports an error.
  parityInBackground.catch(() => {});
}

/** Runs the files of a folder, `concurrency` at a time: one where a model or a bundler keeps all cores busy. */
async function nodeTests(tally, folder, concurrency, env) {
  await nodeTestFiles(tally, folder, testFilesIn(folder), concurrency, env);
}

/**
 * Files with the real engine run two at a time: each keeps about one core busy, in a worker or in SwiftShader. Those
 * with a fake engine wait half of the time, so four run at once. The headless shell serves where the harness allows it.
 */
async function browserTests(tally, folder) {
  const env = {
    CHROMIUM: await provideBrowser(),
    INPAGE_HEADLESS_SHELL: (await provideHeadlessShell()) ?? "",
  };
  const usesEngine = (file) => readFileSync(join(root, file), "utf8").includes("wasmIsBuilt");
  const files = testFilesIn(folder);
  const [real, fake] = [files.filter(usesEngine), files.filter((file) => !usesEngine(file))];
  await nodeTestFiles(tally, `${folder}, fake engine`, fake, 4, env);
  if (real.length > 0) await nodeTestFiles(tally, `${folder}, real engine`, real, 2, env);
}

/**
 * Files that pack or compress the package run one at a time, because they write into the checkout, and the others beside them. Each keeps
 * about one core busy.
 */
async function packageTests(tally, folder) {
  const env = { CHROMIUM: await provideBrowser() };
  const packs = (file) => /packed\.mjs|compress\.mjs/.test(readFileSync(join(root, file), "utf8"));
  const files = testFilesIn(folder);
  const [packing, others] = [files.filter(packs), files.filter((file) => !packs(file))];
  await Promise.all([
    nodeTestFiles(tally, `${folder}, packing`, packing, 1, env),
    nodeTestFiles(tally, `${folder}, others`, others, 1, env, { beside: true }),
  ]);
}

const testFilesIn = (folder) => filesIn(folder, ".test.mjs").map((name) => `${folder}/${name}`);

async function nodeTestFiles(tally, name, files, concurrency, env, options) {
  if (files.length === 0) {
    tally.fail(`${name} (no test files)`);
    return;
  }
  const args = [
    "--test",
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${NODE_TEST_LIMIT_MS}`,
    "--test-reporter=tap",
    ...files,
  ];
  await tally.count(`node --test ${name}`, process.execPath, args, NODE_COUNTS, {
    ...options,
    env,
  });
}

/** Runs conformance cases with these arguments of `scripts/conformance.mjs`. */
const askConformance =
  (tally) =>
  (name, args, options = {}) =>
    tally.count(
      `conformance: ${name}`,
      process.execPath,
      ["scripts/conformance.mjs", ...args],
      CONFORMANCE_COUNTS,
      options,
    );

let vulkanEnv;
async function gpuEnv() {
  vulkanEnv ??= await provideVulkan(await provideBrowser());
  return vulkanEnv;
}

// The same for all tests and lints of cargo, so that the library and its dependencies are compiled once.
const HOOKS = ["--features", "test-hooks"];

/**
 * Unit tests are compiled at level 0: that saves more time in the compiler than it costs when they run. Dependencies keep their levels, so
 * they are those of all tests. Futures of a load are large without optimization: they overflow the stack that test threads have by default.
 */
const UNOPTIMIZED = { CARGO_PROFILE_DEV_OPT_LEVEL: "0", RUST_MIN_STACK: String(16 << 20) };

// Every op has a test of this name. These tests need no GPU.
const SHADER_TESTS = "kernels_are_valid_wgsl";

// The name of each tier, and a function that runs it and counts results in a tally.
const TIERS = {
  lint: async (tally) => {
    requireNode();
    await provideNpmPackages();
    await tally.check("biome", npmProgram("biome"), ["ci", "--error-on-warnings"]);
    await tally.check("cargo fmt", "cargo", ["fmt", "--all", "--check"]);
    // It takes minutes to compile, so it is not installed for this. Advisories need the network.
    const deny = ["--locked", "check", "licenses", "bans", "sources"];
    if (which("cargo-deny")) await tally.check("cargo deny", "cargo-deny", deny);
  },
  rust: async (tally) => {
    await requireRust();
    const env = await gpuEnv();
    const compile = (name, args, options) =>
      tally.check(name, "cargo", ["test", "--locked", "--no-run", ...HOOKS, ...args], options);
    const programs = rustTestNames().flatMap((name) => ["--test", name]);
    await compile("compile the test programs", ["--examples", ...programs]);
    const unoptimized = { ...env, ...UNOPTIMIZED };
    await compile("compile the unit tests", ["--lib"], { env: unoptimized });
    const units = [...HOOKS, "--no-fail-fast", "--lib", "--", "--skip", SHADER_TESTS];
    await cargoTest(tally, "unit tests", units, unoptimized);
    const others = rustTestNames().filter((name) => !GPU_TESTS.includes(name));
    const run = [...HOOKS, "--examples", ...others.flatMap((name) => ["--test", name])];
    await cargoTest(tally, "test programs", ["--no-fail-fast", ...run], env);
    const kernels = ["--package", "inpage-cpu"];
    await cargoTest(tally, "kernels of the CPU", kernels);
    const documentation = ["test", "--locked", "--doc", ...HOOKS];
    await tally.count("documentation tests", "cargo", documentation, CARGO_COUNTS, {
      mayBeEmpty: true,
    });
    const clippy = ["clippy", "--locked", "--all-targets", ...HOOKS, "--", "-D", "warnings"];
    await tally.check("clippy", "cargo", clippy);
    const patch = ["--package", "inventory"];
    const clippyOfKernels = ["clippy", "--locked", ...kernels, ...patch, "--all-targets"];
    const deny = ["--", "-D", "warnings"];
    await tally.check("clippy for the kernels of the CPU", "cargo", [...clippyOfKernels, ...deny]);
    const clippyOfFuzzing = ["clippy", "--locked", "--package", "inpage-fuzz"];
    if (!obstacle())
      await tally.check("clippy for fuzzing", "cargo", [...clippyOfFuzzing, ...deny]);
    // Without hooks, as shipped. The example brings the development dependencies in, whose features clippy has checked the
    // others with: without it, cargo would check all of them once more.
    const documented = ["doc", "--locked", "--no-deps", "--lib", "--example", "tokenize"];
    await tally.check("cargo doc", "cargo", documented, {
      env: { RUSTDOCFLAGS: "-D warnings" },
    });
  },
  fuzz: async (tally) => {
    const reason = obstacle();
    if (reason) {
      say(`skipped: ${reason}`);
      tally.skipped += 1;
      return;
    }
    if (performance.now() - start_ms > 0.35 * limit_ms) return tally.cut("fuzz");
    const program = await tally.build("fuzz program", buildFuzzer);
    const failures = await tally.time("fuzz", () => fuzzAll(program, targets(), FUZZ_SECONDS));
    for (const [target] of failures) tally.fail(`fuzz ${target}`);
    tally.passed += targets().length - failures.length;
  },
  // Before the modules are needed: the compiler links them on one core meanwhile.
  kernels: async (tally) => {
    await gpuTests(tally, "kernels", { share: 0.4 });
  },
  shaders: async (tally) => {
    await requireRust();
    const validate = [...HOOKS, "--lib", SHADER_TESTS];
    await cargoTest(tally, "shaders compose and validate", validate, UNOPTIMIZED);
  },
  // It runs while the module of the package is linked, which it does not need.
  native: async (tally) => {
    await buildServer(tally);
    const ask = askConformance(tally);
    await ask("embedded model, native, on the GPU", []);
    const models = process.env.INPAGE_MODELS ?? join(root, "../shared/models");
    // The models for embeddings, images and rerank (groups L, N and P) are the same each time.
    const text = ["--device", "cpu", "--group", "ABCDEFGHIJKMO"];
    for (const [name, file, options] of [
      ["ts4m", "ts4m/ts4m-Q4_0.gguf", ["--device", "cpu"]],
      ["a recurrent model", "2026/qwen35-Q4_0.gguf", text],
      ["a model that shares KV between layers", "2026/gemma4-Q4_0.gguf", text],
    ]) {
      const model = join(models, file);
      if (existsSync(model))
        await ask(`${name}, native, on the CPU`, ["--model", model, ...options]);
      else say(`conformance: skipped ${file}, which is not here`);
    }
  },
  wasm: async (tally) => {
    const tools = await setUpForBuild();
    const { cargo, args, env, clippy } = tools.toolchain;
    await tally.build("wasm module", async () => {
      await moduleBuilt;
      await buildWasm(tools);
    });
    await tally.build("TypeScript", buildTypeScript);
    await tally.build("notices of third parties", buildNotices);
    await tally.check("types of the demo", npmProgram("tsc"), ["-p", "www/demo"]);
    await tally.check("types of the page that measures", npmProgram("tsc"), ["-p", "www/measure"]);
    await tally.check("types for apps", npmProgram("tsc"), ["-p", "tests/types"]);
    await tally.check("download size", process.execPath, ["scripts/size.mjs"]);
    if (clippy) {
      // Clippy would make a crate that it looks at depend on the checkout's Cargo.toml and clippy.toml. Without `--no-deps` that
      // is also `src/inventory`, and each new checkout would check burn once more.
      const crates = ["--no-deps", "--package", "inpage", "--package", "inpage-cpu", "--lib"];
      const profile = ["--profile", "web"];
      const check = ["clippy", "--locked", ...crates, ...profile, ...args, "--", "-D", "warnings"];
      await tally.check("clippy for wasm", cargo, check, { env });
    }
    if (buildsInBackground) hookedModuleBuilt = buildInBackground("--test-hooks");
  },
  browser: async (tally) => {
    await provideBuild(tally);
    await browserTests(tally, "tests/browser");
  },
  delivery: async (tally) => {
    await provideBuild(tally);
    await browserTests(tally, "tests/delivery");
  },
  conformance: async (tally) => {
    const ask = askConformance(tally);
    await provideBrowser();
    await hookedModuleBuilt;
    const hooks = ["scripts/build.mjs", "--test-hooks"];
    await tally.check("package with hooks", process.execPath, hooks);
    // Cases that the GPU does not decide (validation, routes, chats and responses as text) run on the CPU in pages. Natively, all of them run on
    // the GPU.
    const onGpu = ["--built", "--door", "page", "--group", "DEFGHIJLN"];
    const onCpu = ["--built", "--device", "cpu", "--door"];
    const others = [...onCpu, "page", "--group", "ABCKMOP"];
    // Each keeps about one core busy.
    const beside = { beside: true };
    const askOnCpu = async () => {
      await ask("embedded model, in the page, on the CPU", others, beside);
      const name = "embedded model, through the service worker, on the CPU";
      await ask(name, [...onCpu, "sw"], beside);
    };
    await Promise.all([ask("embedded model, in the page, on the GPU", onGpu), askOnCpu()]);
  },
  clients: async (tally) => {
    await buildServer(tally);
    await provideBuild(tally);
    await nodeTests(tally, "tests/clients", 2);
  },
  real: async (tally) => {
    const { reason } = await provideRealModels();
    if (reason) {
      say(`skipped: ${reason}`);
      tally.skipped += 1;
      return;
    }
    await buildServer(tally);
    await provideBuild(tally);
    const env = { CHROMIUM: await provideBrowser() };
    await nodeTests(tally, "tests/real", 1, env);
  },
  firefox: async (tally) => {
    if (!(await isProvided(tally, "Firefox", findFirefox, ["firefox-esr"]))) return;
    await provideBuild(tally);
    await otherBrowser(tally, "firefox", await gpuEnv());
  },
  webkit: async (tally) => {
    if (!(await isProvided(tally, "WebKitGTK", findWebKit, ["webkit2gtk-driver", "xvfb"]))) return;
    await provideBuild(tally);
    await otherBrowser(tally, "webkit");
  },
  node: async (tally) => {
    await provideBuild(tally);
    await nodeTests(tally, "tests/node", 2);
  },
  package: async (tally) => {
    await provideBuild(tally);
    await packageTests(tally, "tests/package");
  },
  docs: async (tally) => {
    await provideBuild(tally);
    const env = { CHROMIUM: await provideBrowser() };
    await nodeTests(tally, "tests/docs", 2, env);
  },
  // Last: without compiled shaders these take long.
  parity: async (tally) => {
    if (parityInBackground) tally.add(await parityInBackground);
    else await gpuTests(tally, "parity", { share: 1 });
  },
};

// Tiers that run only by name. The training program and its autodiff take minutes to compile, and nothing else depends on them.
const NAMED_TIERS = {
  // The frameworks take 500 MB.
  frameworks: async (tally) => {
    await provideBuild(tally);
    const env = { CHROMIUM: await provideBrowser() };
    await nodeTests(tally, "tests/frameworks", 1, env);
  },
  train: async (tally) => {
    await requireRust();
    const train = ["--locked", "--package", "inpage-train"];
    const clippy = ["clippy", ...train, "--all-targets", "--", "-D", "warnings"];
    await tally.check("clippy", "cargo", clippy);
    await tally.count("tests", "cargo", ["test", ...train], CARGO_COUNTS);
  },
};

/** Runs the tests of a browser other than Chromium. Such browsers do not always start: a failure is tried once more. */
async function otherBrowser(tally, name, env) {
  const file = `tests/other_browsers/${name}.test.mjs`;
  for (const isLast of [false, true]) {
    const attempt = new Tally();
    await nodeTestFiles(attempt, file, [file], 1, env);
    if (attempt.failed > 0 && !isLast) {
      tally.steps.push(...attempt.steps);
      continue;
    }
    return tally.add(attempt);
  }
}

/** Finds a browser, or installs it where Debian has it. Without it, its tier is skipped. */
async function isProvided(tally, name, find, packages) {
  try {
    find();
    return true;
  } catch (error) {
    if (!(error instanceof Remediable)) throw error;
  }
  try {
    if (isDebian()) await installPackages(packages, name, INSTALL_LIMIT_MS);
    find();
    return true;
  } catch (error) {
    if (!(error instanceof Remediable)) throw error;
    say(`skipped: ${error.message}. ${error.remedy ?? ""}`);
    tally.skipped += 1;
    return false;
  }
}

/**
 * The tests of some modules alone, which is what a change of them needs first: `engine::tests`, or `endpoint::images` for a
 * module of `tests/endpoint`.
 */
async function rustModules(tally, modules) {
  await requireRust();
  const unoptimized = { ...UNOPTIMIZED, ...process.env };
  const programs = rustTestNames();
  for (const module of modules) {
    const [program, ...path] = module.split("::");
    const isProgram = programs.includes(program);
    const tests = isProgram ? ["--test", program] : ["--lib"];
    const filter = isProgram ? path.join("::") : module;
    const env = GPU_TESTS.includes(program) ? await gpuEnv() : unoptimized;
    await cargoTest(tally, module, [...HOOKS, ...tests, "--", filter], env);
  }
}

/** The native server with hooks. It is built here, because the tests' own limit is shorter than a first build. */
async function buildServer(tally) {
  await requireRust();
  await provideNpmPackages();
  const args = ["build", "--locked", "--example", "serve", ...HOOKS];
  await tally.check("native server", "cargo", args);
}

/**
 * Settle when the wasm modules that are built in the background are there: the one of the package, and the one with hooks. The
 * compiler links each on one core, for minutes. Tiers that need a module build it if it is missing, and report the errors.
 */
let moduleBuilt = Promise.resolve();
let hookedModuleBuilt = Promise.resolve();

/** Whether the modules are built in the background. */
let buildsInBackground = false;

/** Builds a module at low priority, while tests that do not need it run. */
const buildInBackground = (...args) =>
  run(process.execPath, ["scripts/build.mjs", ...args], {
    ...{ background: true, timeout_ms: PROGRAM_LIMIT_MS },
    onOutput() {},
  });

/** Starts to build the module of the package. That with hooks follows after `wasm`, because cargo builds one at a time. */
async function startBuildingModules() {
  try {
    await setUpForBuild();
    await requireRust();
  } catch (error) {
    if (error instanceof Remediable) return;
    throw error;
  }
  buildsInBackground = true;
  moduleBuilt = buildInBackground();
}

async function provideBuild(tally) {
  await tally.time("package", async () => {
    await moduleBuilt;
    await buildWasm(await setUpForBuild());
    await buildTypeScript();
    await buildNotices();
  });
}

/** The number of slowest steps that are listed once more. */
const SLOWEST_STEPS = 20;

function printTable(rows) {
  const print = (line) => process.stdout.write(`${line}\n`);
  const percent = (share) => `${(100 * share).toFixed(0)} %`.padStart(7);
  const line = ([name, taken, busy]) =>
    print(`    ${name.padEnd(44)}${taken.toFixed(1).padStart(9)}${percent(busy)}`);
  print("\ntier         passed failed skipped   seconds   busy");
  for (const { name, tally, seconds } of rows) {
    const counts = [tally.passed, tally.failed, tally.skipped].map((n) => String(n).padStart(6));
    print(`${name.padEnd(12)} ${counts.join(" ")}   ${seconds.toFixed(1).padStart(9)}`);
    for (const step of tally.steps) line(step);
    for (const failure of tally.failures) print(`  failed: ${failure}`);
    for (const cut of tally.cuts) print(`  cut off: ${cut}`);
  }
  const steps = rows.flatMap(({ tally }) => tally.steps).sort((a, b) => b[1] - a[1]);
  print("\nslowest steps");
  for (const step of steps.slice(0, SLOWEST_STEPS)) line(step);
  print("");
}

await main(async (names) => {
  const tiers = { ...TIERS, ...NAMED_TIERS };
  if (names[0] === "rust" && names.length > 1 && names.slice(1).every((it) => !(it in tiers))) {
    const modules = names.splice(1);
    tiers.rust = (tally) => rustModules(tally, modules);
  }
  for (const name of names) {
    if (!(name in tiers)) {
      const known = Object.keys(tiers).join(", ");
      throw new Remediable(`there is no tier "${name}"`, `Tiers: ${known}`);
    }
  }
  if (names.length === 0) await startBuildingModules();
  const rows = [];
  for (const name of names.length > 0 ? names : Object.keys(TIERS)) {
    say(`\n=== ${name}`);
    const tally = new Tally();
    const start = performance.now();
    try {
      await tiers[name](tally);
    } catch (error) {
      // A tier that lacks a prerequisite fails. The others still run.
      if (!(error instanceof Remediable)) throw error;
      say(`${name}: ${error.message}${error.remedy ? `\n${error.remedy}` : ""}`);
      tally.fail(error.message);
    }
    rows.push({ name, tally, seconds: (performance.now() - start) / 1000 });
    if (names.length === 0 && name === "rust" && tally.failed === 0) startParity();
  }
  printTable(rows);
  const sum = (field) => rows.reduce((total, { tally }) => total + tally[field], 0);
  const skipped = sum("skipped");
  const counts = `${sum("passed")} passed, ${sum("failed")} failed`;
  process.stdout.write(`${counts}${skipped > 0 ? `, ${skipped} skipped` : ""}\n`);
  return sum("failed") === 0 ? 0 : 1;
});
