//! A target folder that several checkouts share: what depends on the patched crate is compiled once for the same content.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { keepArtifactsOfPatches } from "../../scripts/setup/shared_target.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";

/** A checkout with a patched crate and one that depends on it. */
function writeCheckout(folder) {
  const crate = (name, more, code) => {
    mkdirSync(join(folder, name, "src"), { recursive: true });
    const manifest = `[package]\nname = "${name}"\nversion = "0.1.0"\nedition = "2024"\n${more}`;
    writeFileSync(join(folder, name, "Cargo.toml"), manifest);
    writeFileSync(join(folder, name, "src/lib.rs"), code);
  };
  const workspace = '[workspace]\nresolver = "3"\nmembers = ["patched", "user"]\n';
  mkdirSync(folder);
  writeFileSync(join(folder, "Cargo.toml"), workspace);
  crate("patched", "", "pub fn one() -> u32 {\n    1\n}\n");
  const dependency = '[dependencies]\npatched = { path = "../patched" }\n';
  crate("user", dependency, "pub fn two() -> u32 {\n    2 * patched::one()\n}\n");
}

test("a new checkout compiles nothing again, changed content does", () => {
  const folder = temporaryFolder("shared-target");
  const target = join(folder, "target");
  const [first, second] = ["first", "second"].map((name) => join(folder, name));
  /** The crates that are compiled. */
  const build = (checkout, { prepared = true } = {}) => {
    if (prepared) keepArtifactsOfPatches(join(checkout, "patched"), target);
    const args = ["check", "--offline", "--package", "user"];
    const env = { ...process.env, CARGO_TARGET_DIR: target, CARGO_TERM_COLOR: "never" };
    const done = spawnSync("cargo", args, { cwd: checkout, env, encoding: "utf8" });
    assert.equal(done.status, 0, done.stderr);
    return [...done.stderr.matchAll(/^ *(?:Checking|Compiling) (\w+)/gm)].map((it) => it[1]);
  };
  // As in a clone: the files are younger than the artifacts of other checkouts.
  const clone = () => {
    cpSync(first, second, { recursive: true });
    const later = new Date(Date.now() + 1000);
    utimesSync(join(second, "patched/src/lib.rs"), later, later);
  };
  writeCheckout(first);
  assert.deepEqual(build(first), ["patched", "user"]);
  // The other member has its own sources, which cargo judges by their times.
  const user = new Date(Date.now() - 60_000);
  clone();
  utimesSync(join(second, "user/src/lib.rs"), user, user);
  assert.deepEqual(build(second, { prepared: false }), ["patched", "user"]);
  clone();
  utimesSync(join(second, "user/src/lib.rs"), user, user);
  assert.deepEqual(build(second), []);
  writeFileSync(join(second, "patched/src/lib.rs"), "pub fn one() -> u32 {\n    3\n}\n");
  assert.deepEqual(build(second), ["patched", "user"]);
  assert.deepEqual(build(first), ["patched", "user"]);
  assert.deepEqual(build(first), []);
});
