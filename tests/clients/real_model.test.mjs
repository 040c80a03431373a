//! Suites of clients on SmolLM2, a real chat model: instructor, pydantic-ai, LangChain's standard tests, the loops of JavaScript
//! clients that run tools, promptfoo, and the cases of Open Responses. Skipped where the packages or the model cannot be had. A run of all tests
//! takes a part of each suite, and none of promptfoo; `INPAGE_CLIENT_SUITES=full node --test tests/clients/real_model.test.mjs` takes all.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root, run } from "../../scripts/process.mjs";
import { buildServer, startServer } from "../conformance/native.mjs";
import { installPackages } from "./packages.mjs";
import {
  INSTRUCTOR,
  LANGCHAIN_OPENAI,
  LANGCHAIN_TESTS,
  PYDANTIC_AI,
  provideVenv,
} from "./python.mjs";
import { provideSmolLm2 } from "./real_model/model.mjs";
import { installPromptfoo } from "./real_model/promptfoo_packages.mjs";

const isFull = process.env.INPAGE_CLIENT_SUITES === "full";
const LIMIT_MS = isFull ? 1_800_000 : 240_000;
const CONTEXT_TOKENS = 2048;
/** The standard tests of which a short run consists, in the notation of pytest. */
const SHORT_RUN =
  "tool_choice or test_tool_calling or structured_output_optional or usage_metadata_streaming";

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const structured = await provideVenv("clients-venv-structured", INSTRUCTOR, PYDANTIC_AI);
const langChain = await provideVenv("clients-venv-langchain", LANGCHAIN_TESTS, LANGCHAIN_OPENAI);
const isInstalled = await installPackages();
const promptfoo = isFull ? await installPromptfoo() : { reason: "in full runs only" };
const python = structured.python ?? langChain.python;
const smol = python ? await provideSmolLm2(python) : structured;
const skip = smol.reason && `skipped: ${smol.reason}`;

describe("on SmolLM2", { skip, concurrency: false }, () => {
  let server;
  before(async () => {
    const { model } = smol;
    const options = { model, device: "cpu", context: CONTEXT_TOKENS };
    server = await startServer(await buildServer(), options);
  });
  after(() => server?.close());

  async function passes(program, args) {
    let output = "";
    const status = await run(program, args, {
      timeout_ms: LIMIT_MS,
      env: { INPAGE_ORIGIN: server.origin },
      onOutput: (text) => {
        output += text;
      },
    });
    assert.equal(status, 0, output);
  }
  const path = (name) => join(root, "tests/clients/real_model", name);
  const whole = isFull ? ["--all"] : [];
  const without = (reason) => ({ skip: reason && `skipped: ${reason}` });

  for (const [name, script] of [
    ["instructor, every mode", "instructor_modes.py"],
    ["pydantic-ai, chat and responses", "pydantic_ai_agents.py"],
  ]) {
    test(name, without(structured.reason), () =>
      passes(structured.python, [path(script), server.origin, ...whole]),
    );
  }

  test("LangChain's standard tests", without(langChain.reason), () => {
    const args = ["-m", "pytest", "--quiet", "--tb=short", "-p", "no:cacheprovider"];
    // The clients of httpx live longer than one test.
    const scopes = ["test", "fixture"].map((it) => `asyncio_default_${it}_loop_scope=session`);
    for (const option of ["asyncio_mode=auto", ...scopes]) args.push("-o", option);
    if (!isFull) args.push("-k", SHORT_RUN);
    return passes(langChain.python, [...args, path("langchain_standard.py")]);
  });

  const reason = !isInstalled && "the packages cannot be installed";
  test("loops of the AI SDK, LangChain and openai for JavaScript", without(reason), () =>
    passes(process.execPath, [path("tool_loops.mjs"), server.origin]),
  );

  test("promptfoo", without(promptfoo.reason), () =>
    passes(process.execPath, [path("promptfoo.mjs"), server.origin, promptfoo.folder]),
  );

  test("the cases of Open Responses that need no stored state", async () => {
    const images = join(root, "tests/parity/images/gemma3");
    const [model, projector] = [`${images}.gguf`, `${images}.mmproj.gguf`];
    const sees = await startServer(await buildServer(), { model, projector, device: "cpu" });
    try {
      await passes(process.execPath, [path("open_responses.mjs"), server.origin, sees.origin]);
    } finally {
      await sees.close();
    }
  });
});
