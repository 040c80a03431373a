//! An engine in the page between honest requests and those that stall, dawdle, leave, or ask for too much, through
//! `engine.fetch`: honest answers arrive, and stalled ones end with `stalled_reader`. `tests/node/serve_attack.test.mjs` does
//! this over HTTP.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const HONEST_REQUESTS = 8;

const SHORT = { model: "default", prompt: "Once upon a time", ignore_eos: true, max_tokens: 40 };
/** More pages than the pool has for two of them, and more events than the engine keeps for a reader. */
const HEAVY = { ...SHORT, n: 8, logprobs: 5, max_tokens: 400, stream: true };

describe("attacks in the page", {
  skip: !wasmIsBuilt && "skipped: the wasm module is not built",
}, () => {
  let harness;
  let page;

  before(async () => {
    harness = await startHarness();
    page = await harness.open();
    const failure = await page.evaluate(() =>
      caught(async () => {
        const load = { kvPoolTokens: 1024, contextTokens: 512 };
        window.engine = await inpage.createEngine({ device: "cpu", threads: 1, load });
      }),
    );
    assert.equal(failure.message, undefined);
  });
  after(() => harness?.close());

  test("honest answers arrive beside requests that are not read", async () => {
    const seen = await page.evaluate(
      async ({ short, heavy, count }) => {
        const url = "https://inpage.invalid/v1/completions";
        const post = (body, init) =>
          engine.fetch(url, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
            ...init,
          });
        const complete = async () =>
          (await engine.completions.create({ ...short, temperature: 0 })).choices[0].text;
        const alone = await complete();

        // These answers are never read, until the end.
        const stalled = await Promise.all([post(heavy), post(heavy)]);
        let isOver = false;
        const slow = (async () => {
          const reader = (await post(heavy)).body.getReader();
          while (!isOver && !(await reader.read()).done) {
            await new Promise((resolve) => setTimeout(resolve, 200));
          }
          await reader.cancel();
        })();
        const leaving = (async () => {
          while (!isOver) {
            const aborter = new AbortController();
            const answer = post(heavy, { signal: aborter.signal });
            setTimeout(() => aborter.abort(), 50);
            await answer.then((response) => response.text()).catch(() => {});
          }
        })();
        const tooLarge = (await post({ ...short, prompt: "a".repeat(33 << 20) })).status;
        const honest = await Promise.all(Array.from({ length: count }, complete));
        isOver = true;
        const ends = await Promise.all(stalled.map((response) => response.text()));
        await Promise.all([slow, leaving]);
        return {
          alone,
          tooLarge,
          honest,
          ends: ends.map((text) => text.slice(-400)),
        };
      },
      { short: SHORT, heavy: HEAVY, count: HONEST_REQUESTS },
    );
    assert.deepEqual(seen.honest, Array(HONEST_REQUESTS).fill(seen.alone));
    assert.equal(seen.tooLarge, 413);
    // Both hold the whole pool, so at least one of them had to end.
    assert.ok(
      seen.ends.some((text) => text.includes("stalled_reader")),
      seen.ends.join("\n"),
    );
  });
});
