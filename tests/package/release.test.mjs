//! `npm run release -- --dry-run`: what it finds wrong, and the links of the packed README.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { withAbsoluteLinks, withRelativeLinks } from "../../scripts/packed_readme.mjs";
import { root } from "../../scripts/process.mjs";
import { faultsOfChangelog, faultsOfDescription, faultsOfFiles } from "../../scripts/release.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { pack, run } from "./packed.mjs";

const read = (file) => readFileSync(join(root, file), "utf8");
const description = JSON.parse(read("package.json"));

test("the description of this package is complete, and one that is not is named", () => {
  assert.deepEqual(faultsOfDescription(description, undefined), []);
  const { homepage, ...without } = description;
  assert.ok(homepage);
  assert.deepEqual(faultsOfDescription(without), ["homepage is missing"]);
  assert.match(faultsOfDescription(description, "someone/fork")[0], /npm refuses its provenance/);
  assert.match(faultsOfDescription({ ...description, version: "1.0" })[0], /version 1\.0/);
  assert.match(faultsOfDescription({ ...description, repository: {} })[0], /repository\.url/);
});

test("the first section of the changelog is of the version, and dated for a release", () => {
  assert.deepEqual(faultsOfChangelog(read("CHANGELOG.md"), description.version, true), []);
  const dated = "# Changelog\n\n## 1.2.0 (2026-11-24)\n";
  assert.deepEqual(faultsOfChangelog(dated, "1.2.0", false), []);
  assert.match(faultsOfChangelog(dated, "1.3.0", true)[0], /not of 1\.3\.0/);
  const open = "## 1.2.0 (unreleased)\n";
  assert.match(faultsOfChangelog(open, "1.2.0", false)[0], /no date/);
});

test("targets of package.json that are not packed, and files that must not be, are named", () => {
  const small = {
    exports: { ".": { default: "./a.js" }, "./m/*": "./m/*" },
    bin: {},
    main: "a.js",
  };
  const base = ["README.md", "LICENSE", "www/dist/THIRD_PARTY_LICENSES.txt", "a.js"];
  assert.deepEqual(faultsOfFiles(base, small), []);
  assert.deepEqual(faultsOfFiles(base.slice(0, 3), small), [
    "a.js is not packed",
    "a.js is not packed",
  ]);
  for (const stray of [".env", "tests/x.mjs", "a/node_modules/b.js", "key.pem"]) {
    assert.deepEqual(faultsOfFiles([...base, stray], small), [`${stray} is packed`]);
  }
});

test("links of the packed README lead to the repository, and those of the file stay", () => {
  const text =
    "[a](docs/a.txt#b) [c](https://x.example/y) [d](#e) ![f](docs/f.png) [g](mailto:a@b)";
  const repository = { url: "git+https://host.example/o/n.git" };
  const page = "https://host.example/o/n";
  assert.equal(
    withAbsoluteLinks(text, { repository, version: "1.0.0" }),
    `[a](${page}/blob/v1.0.0/docs/a.txt#b) [c](https://x.example/y) [d](#e) ![f](${page}/raw/v1.0.0/docs/f.png) [g](mailto:a@b)`,
  );
  const before = read("README.md");
  const absolute = withAbsoluteLinks(before, description);
  assert.equal(withAbsoluteLinks(absolute, description), absolute);
  assert.equal(withRelativeLinks(absolute, description), before);
  const folder = temporaryFolder("inpage-readme-");
  const { filename } = pack(folder);
  assert.equal(read("README.md"), before);
  const packed = run("tar", ["-xzOf", join(folder, filename), `package/${"README"}.md`], folder);
  const links = [...packed.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link);
  assert.ok(links.length > 10);
  assert.deepEqual(
    links.filter((link) => !/^https?:|^#/.test(link)),
    [],
  );
});
