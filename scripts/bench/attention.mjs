#!/usr/bin/env node
/**
 * Measures attention of the CPU device, its parts and their floor on one thread, as WebAssembly in Node, or with `--native` as a
 * native program. Prints a line of JSON each: `src/cpu/lanes/attention/speed.rs` says what they mean.
 *
 *     node scripts/bench/attention.mjs [--native]
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { provideWasmToolchain } from "../setup/rust.mjs";
import { targetFolder } from "../setup/target.mjs";

const inherit = ["ignore", "inherit", "inherit"];

function measureNatively() {
  const filter = ["attention_speed", "--", "--ignored", "--nocapture"];
  execFileSync("cargo", ["test", "--release", "-p", "inpage-cpu", ...filter], { stdio: inherit });
}

async function measureWebAssembly() {
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
  const module = readFileSync(join(target, "wasm32-unknown-unknown/web/inpage_cpu.wasm"));
  const host = {
    now_ms: () => performance.now(),
    print: (at, length) =>
      console.log(Buffer.from(instance.exports.memory.buffer, at, length).toString()),
  };
  const { instance } = await WebAssembly.instantiate(module, { host });
  // The engine's quick compiler runs first.
  instance.exports.attention_speed();
}

if (process.argv.includes("--native")) measureNatively();
else await measureWebAssembly();
