//! A Rust toolchain that builds for wasm32-unknown-unknown: rustup's, else Debian's with a standard library
//! built from source. Returns how to call cargo. Builds nothing itself.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { capture, root, run, say, which, Remediable } from "../process.mjs";
import { readStamp, writeStamp } from "../stamp.mjs";
import { installPackages, isDebian } from "./apt.mjs";
import { keepArtifactsOfPatches } from "./shared_target.mjs";

const TARGET = "wasm32-unknown-unknown";
const DEBIAN_RUSTC = "/usr/bin/rustc";
const DEBIAN_STD_SOURCE = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";
const RUSTUP_LIMIT_MS = 120_000;
const TOOLCHAIN_LIMIT_MS = 15 * 60_000;
// After rustup failed, Debian's Rust is used for a day without a retry, so that a second run starts in seconds.
const RUSTUP_RETRY_MS = 24 * 3_600_000;

const INSTALL_RUST =
  process.platform === "win32"
    ? "Install Rust with rustup-init.exe from https://rustup.rs and open a new terminal."
    : "Install Rust:\n    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh\nand open a new terminal.";

function minimumVersion() {
  return /^rust-version\s*=\s*"([^"]+)"/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
}

function versionOf(rustc, toolchain = []) {
  return /^rustc (\d+\.\d+)/.exec(capture(rustc, [...toolchain, "--version"]) ?? "")?.[1];
}

function isAtLeast(version, minimum) {
  const [a, b] = [version, minimum].map((v) => v.split(".").map(Number));
  return a[0] > b[0] || (a[0] === b[0] && a[1] >= b[1]);
}

/** The version of rustc. Installs the toolchain of rust-toolchain.toml if rustup does not have it yet. */
async function provideRustc() {
  if (!which("cargo")) return undefined;
  const version = versionOf("rustc");
  if (version || !which("rustup")) return version;
  say("set-up: the Rust toolchain of rust-toolchain.toml (rustup toolchain install)");
  await run("rustup", ["toolchain", "install"], { timeout_ms: TOOLCHAIN_LIMIT_MS });
  const installed = versionOf("rustc");
  if (installed) return installed;
  // Another compiler that is new enough builds the same program; only its lints may differ.
  const fallback = versionOf("rustc", ["+stable"]);
  if (fallback && isAtLeast(fallback, minimumVersion())) {
    say(`  rustup could not provide it; rustc ${fallback} (stable) is used instead`);
    process.env.RUSTUP_TOOLCHAIN = "stable";
    return fallback;
  }
  throw new Remediable(
    "rustup could not install the toolchain of rust-toolchain.toml",
    "Go online once, or install a Rust that is new enough:\n    rustup update stable",
  );
}

/** Checks that cargo and rustc are installed and new enough, and prepares the target folder; returns the version. */
export async function requireRust() {
  const version = await provideRustc();
  if (!version)
    throw new Remediable("Rust is not installed (cargo and rustc are not on PATH)", INSTALL_RUST);
  const minimum = minimumVersion();
  if (!isAtLeast(version, minimum)) {
    throw new Remediable(
      `Rust ${version} is too old: ${minimum} or newer is needed`,
      which("rustup") ? "Update it:\n    rustup update stable" : INSTALL_RUST,
    );
  }
  keepArtifactsOfPatches();
  return version;
}

const failedLately = () => Date.now() - (readStamp("rustup-failed") ?? 0) < RUSTUP_RETRY_MS;

function hasWasmTarget(rustc) {
  const sysroot = capture(rustc, ["--print", "sysroot"]);
  return sysroot !== undefined && existsSync(join(sysroot, "lib", "rustlib", TARGET, "lib"));
}

/** A linker that supports wasm: rust-lld of any rustup toolchain, or LLVM's wasm-ld. */
function findWasmLinker() {
  const toolchains = join(process.env.RUSTUP_HOME ?? join(homedir(), ".rustup"), "toolchains");
  const candidates = [];
  const listed = (folder) => (existsSync(folder) ? readdirSync(folder) : []);
  for (const name of listed(toolchains)) {
    for (const host of listed(join(toolchains, name, "lib", "rustlib"))) {
      candidates.push(join(toolchains, name, "lib", "rustlib", host, "bin", "rust-lld"));
    }
  }
  for (const name of listed("/usr/lib").filter((name) => name.startsWith("llvm-"))) {
    candidates.push(join("/usr/lib", name, "bin", "wasm-ld"));
  }
  return candidates.find((file) => existsSync(file));
}

function isDebianRustReady() {
  const version =
    existsSync(DEBIAN_RUSTC) && existsSync("/usr/bin/cargo") && versionOf(DEBIAN_RUSTC);
  return version && isAtLeast(version, minimumVersion()) && existsSync(DEBIAN_STD_SOURCE);
}

async function debianToolchain() {
  if (!isDebianRustReady()) {
    await installPackages(
      ["rustc-web", "cargo-web", "rust-web-src"],
      "Debian's Rust for the wasm target",
    );
    if (!isDebianRustReady()) {
      throw new Remediable(
        `Debian's rustc-web is older than Rust ${minimumVersion()}`,
        `Add the target while rustup's server is reachable:\n    rustup target add ${TARGET}`,
      );
    }
  }
  let linker = findWasmLinker();
  if (!linker) {
    await installPackages(["lld"], "the wasm linker");
    linker = findWasmLinker();
  }
  return {
    name: `Debian rustc ${versionOf(DEBIAN_RUSTC)} with build-std`,
    cargo: "/usr/bin/cargo",
    args: ["-Z", "build-std=std,panic_abort", "--target", TARGET],
    env: {
      PATH: `/usr/bin${delimiter}${process.env.PATH}`,
      RUSTC: DEBIAN_RUSTC,
      // Permits -Z options on a release compiler.
      RUSTC_BOOTSTRAP: "1",
      CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: linker,
    },
    clippy: false,
  };
}

/**
 * `{ name, cargo, args, env, clippy }`: the program, its target arguments and environment for a wasm build.
 * INPAGE_WASM_TOOLCHAIN=rustup|debian selects one of the two.
 */
export async function provideWasmToolchain() {
  const wanted = process.env.INPAGE_WASM_TOOLCHAIN;
  const version = await requireRust();
  if (wanted === "debian") return debianToolchain();
  const ready = {
    name: `rustc ${version}`,
    cargo: "cargo",
    args: ["--target", TARGET],
    env: {},
    clippy: true,
  };
  if (hasWasmTarget("rustc")) return ready;
  if (which("rustup") && !(failedLately() && isDebianRustReady())) {
    say(`set-up: the wasm target (rustup target add ${TARGET})`);
    const status = await run("rustup", ["target", "add", TARGET], {
      env: { RUSTUP_MAX_RETRIES: "1" },
      timeout_ms: RUSTUP_LIMIT_MS,
    });
    if (status === 0 && hasWasmTarget("rustc")) return ready;
    say("  rustup could not provide it");
    writeStamp("rustup-failed", Date.now());
  }
  if (wanted !== "rustup" && isDebian()) {
    if (!isDebianRustReady()) say("set-up: the wasm target from Debian's own Rust");
    return debianToolchain();
  }
  throw new Remediable(
    `Rust cannot build for ${TARGET} yet`,
    which("rustup")
      ? `Add the target while online:\n    rustup target add ${TARGET}`
      : `Your Rust does not come from rustup. Add the target to it, or: ${INSTALL_RUST}`,
  );
}
