#!/usr/bin/env node
/**
 * Measures attention of the CPU device, its parts and their floor on one thread, as WebAssembly in Node, or with `--native` as a
 * native program. Prints a line of JSON each: `src/cpu/lanes/attention/speed.rs` says what they mean. Other modules, which
 * `--keep FILE` has written from other sources, are measured in turn with this one.
 *
 *     node scripts/bench/attention.mjs [--native | [--keep FILE] [OTHER.wasm ...]]
 */

import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";

import { provideWasmToolchain } from "../setup/rust.mjs";
import { targetFolder } from "../setup/target.mjs";

const inherit = ["ignore", "inherit", "inherit"];

function measureNatively() {
  const filter = ["attention_speed", "--", "--ignored", "--nocapture"];
  execFileSync("cargo", ["test", "--release", "-p", "inpage-cpu", ...filter], { stdio: inherit });
}

/** Processor time of this process: other programs on the machine do not count. */
function processorTime_ms() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function buildModule() {
  const toolchain = await provideWasmToolchain();
  const target = join(targetFolder(), "attention-speed");
  const args = ["rustc", "--package", "inpage-cpu", "--lib", "--crate-type", "cdylib"];
  args.push("--features", "measure", "--locked", "--profile", "web", ...toolchain.args);
  const env = {
    ...process.env,
    ...toolchain.env,
    CARGO_TARGET_DIR: target,
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: "-C target-feature=+simd128",
  };
  execFileSync(toolchain.cargo, args, { stdio: inherit, env });
  return join(target, "wasm32-unknown-unknown/web/inpage_cpu.wasm");
}

async function measure(file) {
  const host = {
    now_ms: processorTime_ms,
    print: (at, length) => {
      const line = Buffer.from(instance.exports.memory.buffer, at, length).toString();
      console.log(JSON.stringify({ module: file, ...JSON.parse(line) }));
    },
  };
  const { instance } = await WebAssembly.instantiate(readFileSync(file), { host });
  instance.exports.attention_speed();
}

async function measureWebAssembly(keep, others) {
  // The program is one call, within which an engine does not change from the code of its quick compiler to optimized code.
  setFlagsFromString("--no-liftoff");
  setFlagsFromString("--no-wasm-lazy-compilation");
  const built = await buildModule();
  if (keep) copyFileSync(built, keep);
  const modules = [...others, built];
  const rounds = others.length > 0 ? 2 : 1;
  for (let round = 0; round < rounds; round++) for (const file of modules) await measure(file);
}

const { values, positionals } = parseArgs({
  options: { native: { type: "boolean" }, keep: { type: "string" } },
  allowPositionals: true,
});
if (values.native) measureNatively();
else await measureWebAssembly(values.keep, positionals);
