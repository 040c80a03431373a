//! `npm run fuzz`: feeds every reader of foreign input with mutations of the inputs in `tests/fuzz/corpus`, guided by coverage
//! (libFuzzer). `npm run fuzz -- TARGET ... --seconds N` fuzzes the named targets for N seconds each; `--keep` adds the inputs that
//! reach new code to the corpus. An input that panics, takes too long or takes too much memory is written to `target/fuzz`.

import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isProgram, main, Remediable, root, run, say, which, windows } from "./process.mjs";
import { requireRust } from "./setup/rust.mjs";
import { targetFolder } from "./setup/target.mjs";

const CORPUS = "tests/fuzz/corpus";
const DICTIONARIES = "tests/fuzz/dictionaries";
const WORK = "target/fuzz";

/** Longest time for one input. Targets are compiled with little optimization, and both cores are busy. */
const INPUT_LIMIT_SECONDS = 20;
/** Largest input. Files grow with the corpus's largest, so this bounds what a mutation may add. */
const INPUT_LIMIT_BYTES = 64 << 10;
/** The memory bounds of a target are its own (`tests/fuzz/src/bounds.rs`). This one is for the process. */
const PROCESS_LIMIT_MIB = 2048;
/** Targets that run at the same time. */
const CONCURRENCY = 2;

export const targets = () => readdirSync(join(root, CORPUS)).sort();

/** The reason why fuzzing is impossible here; undefined if it is possible. */
export function obstacle() {
  if (windows) return "the build with coverage needs a POSIX shell";
  if (!which("c++")) return "libFuzzer needs a C++ compiler (c++)";
  return undefined;
}

/** Builds the fuzz program and returns its path. */
export async function buildFuzzer() {
  await requireRust();
  const args = ["build", "--locked", "--package", "inpage-fuzz", "--bin", "inpage-fuzz"];
  const status = await run("cargo", args, {
    env: {
      RUSTC_WORKSPACE_WRAPPER: join(root, "scripts/fuzz/rustc_with_coverage.sh"),
      CARGO_INCREMENTAL: "0",
    },
  });
  if (status !== 0) throw new Remediable(`the fuzz program was not built (exit status ${status})`);
  return join(targetFolder(), "debug/inpage-fuzz");
}

/** Fuzzes one target; resolves with what libFuzzer wrote about a failure, or undefined. */
async function fuzz(program, target, seconds, keep) {
  const corpus = join(root, CORPUS, target);
  const found = join(root, WORK, target);
  rmSync(found, { recursive: true, force: true });
  mkdirSync(found, { recursive: true });
  const args = [
    // New inputs are written to the first folder.
    ...(keep ? [corpus] : [found, corpus]),
    `-max_total_time=${seconds}`,
    `-timeout=${INPUT_LIMIT_SECONDS}`,
    `-max_len=${INPUT_LIMIT_BYTES}`,
    `-rss_limit_mb=${PROCESS_LIMIT_MIB}`,
    `-artifact_prefix=${join(root, WORK, `${target}-`)}`,
    "-reload=0",
    "-print_final_stats=1",
  ];
  const dictionary = join(root, DICTIONARIES, `${target}.dict`);
  if (existsSync(dictionary)) args.push(`-dict=${dictionary}`);
  let output = "";
  const status = await run(program, args, {
    env: { INPAGE_FUZZ_TARGET: target, RUST_BACKTRACE: "1" },
    timeout_ms: (seconds + 120) * 1000,
    onOutput(text) {
      output = (output + text).slice(-20_000);
    },
  });
  const number = (name) => new RegExp(`${name}:\\s*(\\d+)`).exec(output)?.[1] ?? "?";
  say(
    `fuzz ${target}: ${number("number_of_executed_units")} inputs, ` +
      `peak ${number("peak_rss_mb")} MB, slowest ${number("slowest_unit_time_sec")} s` +
      (status === 0 ? "" : `, FAILED with status ${status}`),
  );
  return status === 0 ? undefined : output;
}

/** Fuzzes targets, some at a time; resolves with the failures as `[target, output]`. */
export async function fuzzAll(program, names, seconds, keep = false) {
  const waiting = [...names];
  const failures = [];
  const work = async () => {
    for (let target = waiting.shift(); target; target = waiting.shift()) {
      const output = await fuzz(program, target, seconds, keep);
      if (output !== undefined) failures.push([target, output]);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  for (const [target, output] of failures) say(`\n--- ${target}\n${output}`);
  return failures;
}

if (isProgram(import.meta.url)) {
  await main(async (args) => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        seconds: { type: "string", default: "60" },
        keep: { type: "boolean", default: false },
      },
    });
    const reason = obstacle();
    if (reason) throw new Remediable(reason);
    const known = targets();
    const unknown = positionals.filter((name) => !known.includes(name));
    if (unknown.length > 0)
      throw new Remediable(
        `there is no target ${unknown.join(", ")}`,
        `Targets: ${known.join(", ")}`,
      );
    const names = positionals.length > 0 ? positionals : known;
    const failures = await fuzzAll(await buildFuzzer(), names, Number(values.seconds), values.keep);
    return failures.length === 0 ? 0 : 1;
  });
}
