//! `npm run coverage`: runs the Rust tests with counters and prints the share of executed lines by module, with `--json` as
//! JSON. Tests on a GPU take part only by name: `npm run coverage -- kernels parity`. Lines of tests do not count.
//! `cargo llvm-cov` does the same, but compiles all dependencies once more. `npm run coverage -- typescript` does it for
//! `www/src`, by folder.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { typeScriptByFolder } from "./coverage/typescript.mjs";
import { capture, main, mustRun, Remediable, root, say, windows } from "./process.mjs";
import { provideBrowser } from "./setup/browser.mjs";
import { requireRust } from "./setup/rust.mjs";
import { targetFolder } from "./setup/target.mjs";
import { provideVulkan } from "./setup/vulkan.mjs";
import { GPU_TESTS, rustTestNames } from "./test_names.mjs";

/** Files whose lines are tests, benchmarks that run by name, or exist for tests alone. */
const TESTS = /(^|\/)(tests?|speed|[a-z0-9_]+_(tests|speed))(\/|\.rs$)|^src\/test_hooks\//;

/** The LLVM programs of the active toolchain, which rustup installs as `llvm-tools`. */
function llvmProgram(name) {
  const host = /^host: (.*)$/m.exec(capture("rustc", ["-vV"]))[1];
  const path = join(capture("rustc", ["--print", "sysroot"]), "lib/rustlib", host, "bin", name);
  if (capture(path, ["--version"]) === undefined)
    throw new Remediable(`${name} is not here`, "rustup component add llvm-tools");
  return path;
}

/** Compiles and runs the tests that `arguments_` of `cargo test` name. Returns the paths of the test programs. */
async function runTests(arguments_, env) {
  const cargo = ["test", "--locked", ...arguments_];
  let messages = "";
  await mustRun("cargo", [...cargo, "--no-run", "--message-format=json-render-diagnostics"], {
    env,
    onOutput(text) {
      messages += text;
    },
  });
  await mustRun("cargo", [...cargo, "--no-fail-fast"], { env });
  return messages
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ executable, profile }) => executable && profile.test)
    .map(({ executable }) => executable);
}

/** Lines of product code by module (`src/NAME`), as `{ lines, covered }`. */
function byModule(programs, profile) {
  const objects = programs.flatMap((program) => ["--object", program]);
  const args = ["export", "--summary-only", "--instr-profile", profile, ...objects];
  const options = { maxBuffer: 1 << 28, timeout: 300_000 };
  const report = capture(llvmProgram("llvm-cov"), args, options);
  if (report === undefined) throw new Error("llvm-cov could not read the profile");
  const modules = new Map();
  for (const { filename, summary } of JSON.parse(report).data[0].files) {
    const file = relative(root, filename).split(sep).join("/");
    if (!file.startsWith("src/") || TESTS.test(file)) continue;
    const name = file.split("/").slice(0, 2).join("/");
    const sum = modules.get(name) ?? { lines: 0, covered: 0 };
    sum.lines += summary.lines.count;
    sum.covered += summary.lines.covered;
    modules.set(name, sum);
  }
  return modules;
}

function print(modules, json) {
  const all = { lines: 0, covered: 0 };
  for (const { lines, covered } of modules.values()) {
    all.lines += lines;
    all.covered += covered;
  }
  const rows = [...[...modules].sort(), ["all", all]];
  if (json) {
    process.stdout.write(`${JSON.stringify(Object.fromEntries(rows))}\n`);
    return;
  }
  for (const [name, { lines, covered }] of rows) {
    const percent = ((100 * covered) / lines).toFixed(1);
    process.stdout.write(`${percent.padStart(5)} %  ${String(lines).padStart(6)} lines  ${name}\n`);
  }
}

/** The share of executed lines of Rust by module. `gpuTests` names the tests on a GPU that take part. */
async function rustByModule(gpuTests) {
  for (const name of gpuTests)
    if (!GPU_TESTS.includes(name)) throw new Remediable(`${name}: not one of ${GPU_TESTS}`);
  if (windows) throw new Remediable("the build with counters needs a POSIX shell");
  await requireRust();
  const profiles = join(targetFolder(), "coverage");
  rmSync(profiles, { recursive: true, force: true });
  mkdirSync(profiles, { recursive: true });
  const env = {
    ...(await provideVulkan(await provideBrowser())),
    RUSTC_WORKSPACE_WRAPPER: join(root, "scripts/coverage/rustc_with_counters.sh"),
    CARGO_INCREMENTAL: "0",
    // %m: one file per program, which its processes share.
    LLVM_PROFILE_FILE: join(profiles, "%m.profraw"),
  };
  const names = rustTestNames().filter((it) => gpuTests.includes(it) || !GPU_TESTS.includes(it));
  const programs = [
    ...(await runTests(
      ["--features", "test-hooks", "--lib", ...names.flatMap((name) => ["--test", name])],
      env,
    )),
    ...(await runTests(["--package", "inpage-cpu"], env)),
  ];
  const raw = readdirSync(profiles).map((name) => join(profiles, name));
  const profile = join(profiles, "all.profdata");
  const list = join(profiles, "list");
  writeFileSync(list, raw.join("\n"));
  await mustRun(llvmProgram("llvm-profdata"), ["merge", "--sparse", "-f", list, "-o", profile]);
  return byModule(programs, profile);
}

await main(async (args) => {
  const names = args.filter((argument) => argument !== "--json");
  const folder = join(targetFolder(), "coverage-typescript");
  const sums =
    names[0] === "typescript"
      ? await typeScriptByFolder(folder, names.slice(1))
      : await rustByModule(names);
  say("");
  print(sums, args.includes("--json"));
});
