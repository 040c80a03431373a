//! promptfoo, a program that evaluates prompts, against a server with SmolLM2: node promptfoo.mjs ORIGIN FOLDER, where FOLDER has the
//! packages of `installPromptfoo`.
//! The checks are promptfoo's own. The last request is wrong and must fail with the endpoint's message.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../../scripts/process.mjs";
import { programs } from "./promptfoo_packages.mjs";

const [, , origin, folder] = process.argv;
const LIMIT_MS = 600_000;

const shared = { apiBaseUrl: `${origin}/v1`, apiKey: "unused", temperature: 0, max_tokens: 60 };
const provider = (label, id, config) => ({ id, label, config: { ...shared, ...config } });

const CITY = {
  type: "object",
  properties: { name: { type: "string", maxLength: 40 }, population: { type: "integer" } },
  required: ["name", "population"],
  additionalProperties: false,
};
const WEATHER = {
  type: "function",
  function: {
    name: "weather",
    description: "Reports the weather of a city.",
    parameters: {
      type: "object",
      properties: { city: { enum: ["Oslo", "Rome"] } },
      required: ["city"],
    },
  },
};
const format = { type: "json_schema", json_schema: { name: "city", strict: true, schema: CITY } };

const check = (vars, provider, ...asserts) => ({
  vars,
  providers: [provider],
  assert: asserts.map(([type, value]) => ({ type, ...(value === undefined ? {} : { value }) })),
});
const says = ["javascript", "typeof output === 'string' && output.trim().length > 0"];
/** The answer says how many tokens it took. */
const counts = ["javascript", "context.providerResponse.tokenUsage.total > 0"];

const CONFIG = {
  prompts: ["{{question}}"],
  providers: [
    provider("chat", "openai:chat:default"),
    provider("completion", "openai:completion:default"),
    provider("responses", "openai:responses:default", { max_output_tokens: 60 }),
    provider("schema", "openai:chat:default", { max_tokens: 200, response_format: format }),
    provider("tool", "openai:chat:default", {
      ...{ max_tokens: 200, tools: [WEATHER], tool_choice: "required" },
    }),
    provider("logprobs", "openai:chat:default", { passthrough: { logprobs: true } }),
    provider("refused", "openai:chat:default", { temperature: 9 }),
  ],
  tests: [
    check({ question: "Say hello." }, "chat", says, counts),
    check({ question: "Once upon a time" }, "completion", says, counts),
    check({ question: "Say hello." }, "responses", says, counts),
    check({ question: "Describe Oslo." }, "schema", ["is-json", CITY]),
    check({ question: "Oslo?" }, "tool", ["is-valid-openai-tools-call"]),
    {
      ...check({ question: "Say hello." }, "logprobs", says),
      assert: [{ type: "perplexity", threshold: 1000 }],
    },
    check({ question: "Say hello." }, "refused", says),
  ],
};

const place = mkdtempSync(join(tmpdir(), "promptfoo-"));
try {
  const [config, output] = ["config.json", "output.json"].map((name) => join(place, name));
  writeFileSync(config, JSON.stringify(CONFIG));
  const { node, promptfoo } = programs(folder);
  const options = [
    "--no-cache",
    "--no-write",
    "--no-progress-bar",
    "--no-table",
    "--max-concurrency",
    "1",
  ];
  let printed = "";
  await run(node, [promptfoo, "eval", "--config", config, "--output", output, ...options], {
    cwd: place,
    timeout_ms: LIMIT_MS,
    env: {
      PROMPTFOO_CONFIG_DIR: place,
      PROMPTFOO_DISABLE_TELEMETRY: "1",
      PROMPTFOO_DISABLE_UPDATE: "1",
      PROMPTFOO_DISABLE_REMOTE_GENERATION: "1",
    },
    onOutput: (text) => {
      printed += text;
    },
  });
  const { results } = JSON.parse(readFileSync(output, "utf8")).results;
  const seen = results.map(({ provider, success, error, failureReason }) => {
    console.log(`${success ? "ok" : "failed"} ${provider.label}: ${error ?? ""}`);
    return { provider: provider.label, success, error, failureReason };
  });
  assert.equal(seen.length, CONFIG.tests.length, printed);
  for (const { provider, success, error } of seen) {
    if (provider === "refused") assert.match(error, /temperature/, "the endpoint's message");
    else assert.ok(success, `${provider}: ${error}`);
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
