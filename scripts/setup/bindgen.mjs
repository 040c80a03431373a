//! The wasm-bindgen program in exactly the version of Cargo.lock. Any other version rejects the module.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { capture, Remediable, root, run, say, which, windows } from "../process.mjs";
import { targetFolder } from "./target.mjs";

function lockedVersion() {
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  return /name = "wasm-bindgen"\r?\nversion = "([^"]+)"/.exec(lock)[1];
}

/** The path of a matching wasm-bindgen, which is built with cargo if there is none. */
export async function provideBindgen() {
  const version = lockedVersion();
  const tools = join(targetFolder(), "tools");
  const built = join(tools, "bin", windows ? "wasm-bindgen.exe" : "wasm-bindgen");
  for (const program of [built, which("wasm-bindgen")]) {
    if (
      program &&
      existsSync(program) &&
      capture(program, ["--version"])?.split(" ")[1] === version
    )
      return program;
  }
  say(`set-up: wasm-bindgen ${version} (built once with cargo, a few minutes)`);
  const install = (...more) => {
    const args = ["install", "wasm-bindgen-cli", "--version", version, "--root", tools];
    return run(
      "cargo",
      [...args, "--no-default-features", "--bin", "wasm-bindgen", "--force", "--quiet", ...more],
      {
        // The wasm module is compiled at the same time and takes longer.
        background: true,
        // It runs for a second per build, so compile it without much optimization.
        env: {
          CARGO_PROFILE_RELEASE_OPT_LEVEL: "1",
          CARGO_PROFILE_RELEASE_LTO: "off",
          CARGO_TARGET_DIR: join(tools, "build"),
        },
      },
    );
  };
  // Its lock file may name a crate that the configured registry does not have.
  if ((await install("--locked")) !== 0) {
    say("  failed with its own lock file; trying again with the newest dependencies");
    if ((await install()) !== 0) {
      throw new Remediable(
        `wasm-bindgen ${version} could not be built`,
        `Is crates.io reachable? Try it yourself:\n    cargo install wasm-bindgen-cli --version ${version}`,
      );
    }
  }
  rmSync(join(tools, "build"), { recursive: true, force: true });
  return built;
}
