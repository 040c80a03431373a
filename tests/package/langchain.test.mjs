//! `inpage/langchain`, with the embedded model in this process.

import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root, run } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { installPackages } from "../clients/packages.mjs";

const skip = !(await installPackages()) && "skipped: LangChain cannot be installed";
const prompt = "Once upon a time";
const fields = { temperature: 0, max_tokens: 12 };

describe("a model of LangChain", { skip }, () => {
  let app;
  let engine;
  let Inpage;
  before(async () => {
    // An app with the package and LangChain: the package finds the app's LangChain.
    app = temporaryFolder("inpage-langchain-");
    const installed = join(app, "node_modules/inpage");
    mkdirSync(join(installed, "www"), { recursive: true });
    copyFileSync(join(root, "package.json"), join(installed, "package.json"));
    for (const part of ["dist", "models"]) {
      cpSync(join(root, "www", part), join(installed, "www", part), { recursive: true });
    }
    const langchain = join(root, "tests/clients/node_modules/@langchain");
    symlinkSync(langchain, join(app, "node_modules/@langchain"), "junction");
    writeFileSync(join(app, "package.json"), '{ "type": "module" }');
    writeFileSync(
      join(app, "main.js"),
      'export { createEngine } from "inpage"; export { Inpage } from "inpage/langchain";',
    );
    const main = await import(pathToFileURL(join(app, "main.js")).href);
    Inpage = main.Inpage;
    engine = await main.createEngine();
  });
  after(() => engine?.dispose());

  test("continues a prompt as it is, whole, streamed and in batches", async () => {
    const expected = await engine.completions.create({ model: "default", prompt, ...fields });
    const { text } = expected.choices[0];
    const model = new Inpage({ engine, fields });
    assert.equal(await model.invoke(prompt), text);
    let streamed = "";
    for await (const piece of await model.stream(prompt)) streamed += piece;
    assert.equal(streamed, text);
    assert.deepEqual(await model.batch([prompt, prompt]), [text, text]);
  });

  test("takes stop strings, and fields of a call before its own", async () => {
    const model = new Inpage({ engine, fields, model: "tales" });
    const whole = await model.invoke(prompt);
    const [, stop] = whole.split(" ").filter(Boolean);
    assert.equal(await model.invoke(prompt, { stop: [stop] }), whole.slice(0, whole.indexOf(stop)));
    const grammar = { type: "regex", value: "yes|no" };
    assert.match(await model.invoke("Yes or no? ", { fields: { grammar } }), /^(yes|no)$/);
    await assert.rejects(new Inpage({ engine, model: "other", maxRetries: 0 }).invoke(prompt));
  });

  test("an abort ends the generation", async () => {
    const model = new Inpage({ engine, fields: { max_tokens: 500, ignore_eos: true } });
    const controller = new AbortController();
    const reading = (async () => {
      for await (const _ of await model.stream(prompt, { signal: controller.signal })) {
        controller.abort();
      }
    })();
    await assert.rejects(reading);
    while (engine.openExchanges > 0) await new Promise((done) => setTimeout(done, 10));
  });

  test("the types are those of a model", async () => {
    const file = join(app, "use.mts");
    writeFileSync(
      file,
      `import { StringOutputParser } from "@langchain/core/output_parsers";
import { Inpage } from "inpage/langchain";
const model = new Inpage({ fields: { max_tokens: 8 }, maxRetries: 0 });
const text: string = await model.pipe(new StringOutputParser()).invoke("Once");
const other: string = await model.invoke("Once", { fields: { seed: 1 }, stop: ["."] });
console.log(text, other);
`,
    );
    const tsc = [join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "--ignoreConfig"];
    const options = ["--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"];
    const lib = ["--lib", "es2023,dom,dom.iterable,dom.asynciterable", "--types", "node"];
    const places = ["--typeRoots", join(root, "node_modules/@types")];
    assert.equal(await run(process.execPath, [...tsc, ...options, ...lib, ...places, file]), 0);
  });
});
