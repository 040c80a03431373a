//! Pages with restrictions: content security policies, Trusted Types, sandboxed frames. With a fake engine.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

let harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());

const SCRIPT = `<script type="module">
import { createEngine } from "/dist/index.js";
const workerUrl = "/fixtures/fake_worker.mjs";
const model = { file: new Blob(["abc"]), id: "fake" };
const say = (text) => (parent === window ? document.title = text : parent.postMessage(text, "*"));
try {
  const engine = await createEngine({ workerUrl, model, shared: false });
  const { choices } = await engine.completions.create({ model: "fake", prompt: "count:2" });
  say("text " + choices[0].text);
} catch (error) {
  say([error.name, error.code, error.message].join("|"));
}
</script>`;

/** The answer or the error of the engine of a page with this policy. */
async function saidUnder(policy) {
  const tab = await (await harness.browser.newContext()).newPage();
  const html = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${policy}">${SCRIPT}`;
  await tab.route("**/restricted", (route) =>
    route.fulfill({ contentType: "text/html", body: html }),
  );
  await tab.goto(`${harness.origin}/restricted`);
  await tab.waitForFunction(() => document.title !== "");
  return tab.title();
}

test("a page that requires Trusted Types allows the policy inpage", async () => {
  const said = await saidUnder("require-trusted-types-for 'script'; trusted-types inpage");
  assert.equal(said, "text é0 é1");
});

test("a page that requires Trusted Types without the policy is told its name", async () => {
  const said = await saidUnder("require-trusted-types-for 'script'; trusted-types other");
  assert.match(said, /^InpageError\|worker_unavailable\|.*fake_worker\.mjs.*trusted-types inpage/);
});

test("a page whose policy forbids workers is told the directive", async () => {
  const said = await saidUnder("worker-src 'none'");
  assert.match(said, /^InpageError\|worker_unavailable\|.*fake_worker\.mjs.*worker-src/);
});

test("a sandboxed frame is told what it needs", async () => {
  const tab = await (await harness.browser.newContext()).newPage();
  const cors = { "access-control-allow-origin": "*" };
  // The frame may get the package, and not the worker's script.
  await tab.route("**/*", async (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname === "/outer") {
      const body =
        "<!doctype html><script>onmessage = ({ data }) => { document.title = data; }</script>" +
        '<iframe sandbox="allow-scripts" src="/inner"></iframe>';
      return route.fulfill({ contentType: "text/html", body });
    }
    if (pathname === "/inner") return route.fulfill({ contentType: "text/html", body: SCRIPT });
    if (pathname.startsWith("/fixtures/")) return route.abort();
    const response = await route.fetch();
    return route.fulfill({ response, headers: { ...response.headers(), ...cors } });
  });
  await tab.goto(`${harness.origin}/outer`);
  await tab.waitForFunction(() => document.title !== "");
  assert.match(await tab.title(), /^InpageError\|worker_unavailable\|.*allow-same-origin/);
});

test("a wasm module that is none is named with the likely causes", {
  skip: !wasmIsBuilt,
}, async () => {
  const tab = await harness.open();
  const ask = (wasmUrl) =>
    tab.evaluate(
      (url) => caught(() => inpage.createEngine({ wasmUrl: url, shared: false })),
      wasmUrl,
    );
  const page = await ask("/plain");
  assert.equal(page.code, "wasm_unavailable");
  assert.match(page.message, /the wasm module http.*\/plain could not.*web page.*wasmUrl/);
  const unreached = await ask("https://wasm.example.invalid/x.wasm");
  assert.equal(unreached.code, "wasm_unavailable");
  assert.match(unreached.message, /wasm\.example\.invalid\/x\.wasm could not.*CORS.*connect-src/);
});
