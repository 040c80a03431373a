//! The program that writes the glue of the wasm module, in exactly the version of Cargo.lock. Any other version rejects the module.
//! It is built from the crate in `bindgen`, whose dependencies are locked too.

import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { capture, Remediable, root, run, say, which, windows } from "../process.mjs";
import { digest } from "../stamp.mjs";
import { targetFolder } from "./target.mjs";

const CRATE = "scripts/setup/bindgen";
const SOURCES = ["Cargo.toml", "Cargo.lock", "src"].map((path) => `${CRATE}/${path}`);
const SUFFIX = windows ? ".exe" : "";

function lockedVersion(lock, name) {
  const text = readFileSync(join(root, lock), "utf8");
  return new RegExp(`name = "${name}"\\r?\\nversion = "([^"]+)"`).exec(text)?.[1];
}

/**
 * The version of wasm-bindgen.
 *
 * @throws Remediable if the two lock files name different versions
 */
export function bindgenVersion() {
  const version = lockedVersion("Cargo.lock", "wasm-bindgen");
  const glue = lockedVersion(`${CRATE}/Cargo.lock`, "wasm-bindgen-cli-support");
  if (version !== glue) {
    throw new Remediable(
      `Cargo.lock has wasm-bindgen ${version}, but ${CRATE} has ${glue}`,
      `Name ${version} in ${CRATE}/Cargo.toml and run:\n    cargo update --manifest-path ${CRATE}/Cargo.toml`,
    );
  }
  return version;
}

/** The path of a matching program, which is built with cargo if there is none. */
export async function provideBindgen() {
  const version = bindgenVersion();
  const installed = which("wasm-bindgen");
  if (installed && capture(installed, ["--version"])?.split(" ")[1] === version) return installed;
  const tools = join(targetFolder(), "tools");
  // The name changes with the lock file, so that a program of other dependencies is not taken for this one.
  const name = `bindgen-${digest(SOURCES).slice(0, 16)}${SUFFIX}`;
  const built = join(tools, "bin", name);
  if (existsSync(built)) return built;
  say(`set-up: wasm-bindgen ${version} (built once with cargo, a few minutes)`);
  // Not removed afterwards: a second build that starts meanwhile waits for cargo's lock in it, and then compiles nothing.
  const build = join(tools, "build");
  const manifest = `${CRATE}/Cargo.toml`;
  const args = ["build", "--manifest-path", manifest, "--locked", "--release", "--quiet"];
  const status = await run("cargo", [...args, "--target-dir", build], {
    // The wasm module is compiled at the same time and takes longer.
    background: true,
  });
  if (status !== 0) {
    throw new Remediable(
      `wasm-bindgen ${version} could not be built`,
      `Is crates.io reachable? Try it yourself:\n    cargo ${args.join(" ")}`,
    );
  }
  mkdirSync(dirname(built), { recursive: true });
  const partial = `${built}.${process.pid}`;
  copyFileSync(join(build, "release", `inpage-bindgen${SUFFIX}`), partial);
  // Another build may already run it.
  renameSync(partial, built);
  return built;
}
