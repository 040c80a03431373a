//! The end of a run names the tests that failed: what `node --test`, a Rust test program and the conformance cases print is understood.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { failedTests } from "../../scripts/failed_tests.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";

/** What a program prints, although it fails. A test runner that runs in a test must not report to it. */
function outputOf(program, args, cwd) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout, stderr, status } = spawnSync(program, args, { cwd, env, encoding: "utf8" });
  assert.notEqual(status, 0, stderr);
  return `${stdout}${stderr}`;
}

test("failed tests of node are named with their place and the reason", () => {
  const folder = temporaryFolder("failed-tests");
  const file = join(folder, "some.test.mjs");
  const ends = join(folder, "ends.test.mjs");
  writeFileSync(
    file,
    `import { test } from "node:test";
test("passes", () => {});
test("contains", async (t) => {
  await t.test("it's # inner", () => { throw new Error("it's broken\\nmore"); });
});
test("to do", { todo: true }, () => { throw new Error("known"); });
test("slow", { timeout: 50 }, () => new Promise((done) => setTimeout(done, 5000)));
`,
  );
  writeFileSync(ends, "process.exit(3);\n");
  const args = ["--test", "--test-concurrency=1", "--test-reporter=tap", ends, file];
  assert.deepEqual(failedTests(outputOf(process.execPath, args, folder)), [
    `${ends} (${ends}:1:1): test failed`,
    `it's # inner (${file}:4:11): it's broken more`,
    `slow (${file}:7:1): test timed out after 50ms`,
  ]);
});

test("failed tests of a Rust program are named with their place and message", () => {
  const folder = temporaryFolder("failed-tests");
  const code = `#[test]
fn passes() {}
mod inner {
    #[test]
    fn fails() {
        assert_eq!(1 + 1, 3, "a sum");
    }
}
`;
  writeFileSync(join(folder, "some.rs"), code);
  const compiled = spawnSync("rustc", ["--test", "some.rs", "-o", "some"], { cwd: folder });
  assert.equal(compiled.status, 0, String(compiled.stderr));
  assert.deepEqual(failedTests(outputOf(join(folder, "some"), [], folder)), [
    "inner::fails (some.rs:6:9): assertion `left == right` failed: a sum left: 2 right: 3",
  ]);
});

test("failed conformance cases are named with their reason", () => {
  const output = `ok C-001 a case (0.1 s)
not ok C-002 another (of two) (12.3 s): got 1, not 2
1 passed, 1 failed
`;
  assert.deepEqual(failedTests(output), ["C-002 another (of two): got 1, not 2"]);
});
