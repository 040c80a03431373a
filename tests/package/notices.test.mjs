//! The notices of third parties in the package: every crate of the wasm modules, every bundled npm package, every licence.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { filesUnder } from "../../scripts/stamp.mjs";
import {
  buildNotices,
  bundledPackages,
  LICENSES,
  licensesOf,
  NOTICES,
  noticesOf,
} from "../../scripts/notices.mjs";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { pack } from "./packed.mjs";

before(buildNotices);

const notices = () => readFileSync(join(root, NOTICES), "utf8");
const listed = () => new Set([...notices().matchAll(/^(\S+ \S+) {2}[A-Z]/gm)].map(([, id]) => id));

test("the package has the notices", () => {
  const { files } = pack(temporaryFolder("inpage-notices-"));
  assert.ok(files.some(({ path, size }) => path === NOTICES && size > 50_000));
});

/** The crates that cargo's own resolution reaches from a package by normal dependencies, with its features. */
function cratesOf(name, ...features) {
  const args = ["tree", "--locked", "--package", name, ...features, "--edges", "normal"];
  args.push("--target", "wasm32-unknown-unknown", "--prefix", "none");
  const text = execFileSync("cargo", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
  return new Set(
    text
      .trim()
      .split(/\r?\n/)
      // Our own crates have a path.
      .filter((line) => !/ v\S+ \((?!proc-macro|\*)/.test(line))
      .map((line) => line.split(" ").slice(0, 2).join(" ").replace(" v", " ")),
  );
}

test("they name every crate of the wasm modules, and no other", () => {
  const linked = new Set([
    ...cratesOf("inpage"),
    ...cratesOf("inpage-cpu", "--features", "module"),
  ]);
  assert.ok(linked.size > 200, `${linked.size} crates`);
  const named = listed();
  assert.deepEqual(
    [...linked].filter((id) => !named.has(id)),
    [],
  );
  // The checkout has no npm packages, because the script bundles none.
  assert.deepEqual(
    [...named].filter((id) => !linked.has(id)),
    [],
  );
});

test("they have the text of every licence, and copyright lines and notices of packages", () => {
  const text = notices();
  for (const [license, pattern] of Object.entries(LICENSES)) {
    if (
      new RegExp(` {2}(?:.* AND )?${license.replaceAll(".", "\\.")}(?: AND .*)? {2}http`).test(text)
    )
      assert.match(text, pattern, license);
  }
  for (const license of ["Apache-2.0", "MIT", "MPL-2.0", "BSD-3-Clause"])
    assert.match(text, new RegExp(` {2}${license} {2}http`));
  assert.match(text, /Copyright \(c\) 2015 Andrew Gallant/);
  assert.match(text, /Copyright 2022-\d+ Vaivaswatha Nagaraj and pliron contributors/);
  assert.match(text, /MPL-2\.0:\n(?:\S+ \S+ {2}https:\S+\n)*colored \S+ {2}https:\S+\n/);
  assert.match(text, /Rust standard library \d+\.\d+/);
});

test("scripts of the package contain no other packages than those named", () => {
  const maps = filesUnder(join(root, "www/dist")).filter((file) => file.endsWith(".js.map"));
  assert.ok(maps.length > 2);
  const named = [...listed()].map((id) => id.split(" ")[0]);
  for (const map of maps) {
    for (const source of JSON.parse(readFileSync(map, "utf8")).sources) {
      const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? [];
      assert.ok(name === undefined || named.includes(name), `${name} is in ${map}`);
    }
  }
});

test("a bundled npm package is found, with its licence", async () => {
  // Inside of the repository, so that its packages are found.
  const folder = join(root, "target/notices-test");
  mkdirSync(folder, { recursive: true });
  const entry = join(folder, "entry.js");
  writeFileSync(entry, 'import { marked } from "marked";\nconsole.log(marked);\n');
  const found = await bundledPackages([entry]);
  assert.deepEqual(
    found.map(({ name }) => name),
    ["marked"],
  );
  const text = noticesOf(found);
  assert.match(text, /^marked \d+\.\d+\.\d+ {2}MIT {2}https:\/\/www\.npmjs\.com\/package\/marked/m);
  assert.match(text, /Copyright \(c\) 2018\+, MarkedJS/);
});

test("of the licences that a package offers, permitted ones apply", () => {
  assert.deepEqual(licensesOf("MIT OR Apache-2.0"), ["Apache-2.0"]);
  assert.deepEqual(licensesOf("Unlicense/MIT"), ["MIT"]);
  assert.deepEqual(licensesOf("(MIT OR Apache-2.0) AND Unicode-3.0"), [
    "Apache-2.0",
    "Unicode-3.0",
  ]);
  assert.deepEqual(licensesOf("GPL-3.0-only OR MPL-2.0"), ["MPL-2.0"]);
  assert.deepEqual(licensesOf("Apache-2.0 WITH LLVM-exception"), [
    "Apache-2.0 WITH LLVM-exception",
  ]);
  for (const refused of ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "MIT OR", "MIT)", ""]) {
    assert.throws(() => licensesOf(refused), /not permitted|parenthesis/, refused);
  }
  const unknown = { name: "a", version: "1.0.0", url: "https://example.org" };
  assert.throws(() => noticesOf([{ ...unknown, license: "" }]), /a 1\.0\.0 names no licence/);
  assert.throws(() => noticesOf([{ ...unknown, license: "WTFPL" }]), /"WTFPL" is not permitted/);
  assert.throws(() => noticesOf([{ ...unknown, license: "Zlib" }]), /a has no file with the text/);
});

test("cargo-deny permits the same licences", () => {
  const permitted = /^allow = \[([^\]]*)\]/m.exec(readFileSync(join(root, "deny.toml"), "utf8"))[1];
  for (const license of Object.keys(LICENSES)) {
    assert.ok(permitted.includes(`"${license}"`), `${license} is not in deny.toml`);
  }
});
