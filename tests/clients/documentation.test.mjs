//! docs/clients.md names the clients that the tests of this folder call, with their versions.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/process.mjs";
import {
  ANTHROPIC,
  INSTRUCTOR,
  LANGCHAIN_OPENAI,
  LANGCHAIN_TESTS,
  LITELLM,
  OPENAI,
  PYDANTIC_AI,
} from "./python.mjs";
import { PROMPTFOO_VERSION } from "./real_model/promptfoo_packages.mjs";

const read = (file) => readFileSync(join(root, file), "utf8");
const PYTHON = [
  ANTHROPIC,
  OPENAI,
  LITELLM,
  INSTRUCTOR,
  PYDANTIC_AI,
  LANGCHAIN_OPENAI,
  LANGCHAIN_TESTS,
];
/** Needed by others, and no clients. */
const PARTS = ["@langchain/core", "react", "react-dom", "zod"];

test("docs/clients.md has the versions of the tests", () => {
  const rows = read("docs/clients.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const { dependencies } = JSON.parse(read("tests/clients/package.json"));
  const { devDependencies } = JSON.parse(read("package.json"));
  const wanted = [
    ["openai", devDependencies.openai],
    ["promptfoo", PROMPTFOO_VERSION],
    ...PYTHON.map((requirement) => requirement.replace(/\[.*\]/, "").split("==")),
    // An alias is `npm:NAME@VERSION`.
    ...Object.entries(dependencies).map(
      ([name, version]) => /^npm:(.+)@(.+)$/.exec(version)?.slice(1) ?? [name, version],
    ),
  ];
  for (const [name, version] of wanted.filter(([name]) => !PARTS.includes(name))) {
    const isListed = rows.some((row) => row.includes(`\`${name}\``) && row.includes(version));
    assert.ok(isListed, `${name} ${version}`);
  }
});
