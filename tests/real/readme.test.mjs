//! README.md's first app, word for word: its commands in an empty folder, with a local registry that has the packed package, and a local
//! hub that has SmolLM2-135M-Instruct under the catalog's name. The page chats in Chromium. Other packages come from npm's registry.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { capture, root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { wasmIsBuilt } from "../browser/harness.mjs";
import { startHub } from "../delivery/hub_server.mjs";
import { pack } from "../package/packed.mjs";
import { provideRealModels } from "./models.mjs";

/** For a command or a step of the page, on a machine that other programs use. */
const LIMIT_MS = 120_000;
const HUB = "https://huggingface.co";
const MODEL = "smollm2-135m-instruct";

/** The commands of the section "Start an app", without their comments. */
function commandsOfReadme() {
  const text = readFileSync(join(root, "README.md"), "utf8");
  const [, block] = /## Start an app\n\n```sh\n(.*?)```/s.exec(text) ?? [];
  assert.ok(block, "README.md has no block of commands in its section");
  return block
    .trim()
    .split("\n")
    .map((line) => line.replace(/ +# .*/, ""));
}

/** A registry with this package. It sends requests for others to the one that npm uses here. */
async function startRegistry(upstream) {
  const folder = temporaryFolder("inpage-registry-");
  const { filename, version, integrity } = pack(folder);
  const archive = readFileSync(join(folder, filename));
  const description = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const server = createServer(({ url, headers }, response) => {
    if (url === `/${filename}`) return response.end(archive);
    if (url !== "/inpage") {
      return response.writeHead(307, { location: `${upstream}${url.slice(1)}` }).end();
    }
    const dist = { tarball: `http://${headers.host}/${filename}`, integrity };
    const versions = { [version]: { ...description, dist } };
    const document = { name: "inpage", "dist-tags": { latest: version }, versions };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { server, origin: `http://127.0.0.1:${server.address().port}/` };
}

const upstream = capture("npm", ["config", "get", "registry"])?.trim();
const isReachable = async (url) => (await fetch(url).catch(() => undefined))?.ok === true;
const models = await provideRealModels();
const reason =
  models.reason ??
  (wasmIsBuilt ? undefined : "the wasm module is not built") ??
  ((await isReachable(`${upstream}vite`)) ? undefined : "npm's registry cannot be reached");

describe("README.md", { skip: reason && `skipped: ${reason}` }, () => {
  let registry;
  let hub;
  let browser;
  const running = new Set();
  before(async () => {
    registry = await startRegistry(upstream);
    const { catalog } = await import(join(root, "www/dist/catalog/models.js"));
    const { resolveModel } = await import(join(root, "www/dist/options/model.js"));
    const { model } = catalog.find(({ name }) => name === MODEL).files;
    const { pathname } = new URL(resolveModel(model).location.urls[0]);
    hub = await startHub({ [pathname.replace("/resolve/", "/")]: readFileSync(models.smolLm2) });
    browser = await launchChromium();
  });
  after(async () => {
    for (const { pid } of running) process.kill(-pid);
    await browser?.close();
    await hub?.close();
    registry?.server.closeAllConnections();
    registry?.server.close();
  });

  const empty = temporaryFolder("inpage-readme-app-");
  // A cache of its own: npx keeps packages by name and version, and this version changes.
  const env = () => ({
    ...process.env,
    npm_config_registry: registry.origin,
    npm_config_cache: join(empty, ".npm"),
    npm_config_yes: "true",
    npm_config_audit: "false",
    npm_config_update_notifier: "false",
  });

  /** Runs a command in a shell. Resolves with its output when it ends, or with what it prints first that matches the pattern. */
  function shell(command, cwd, pattern) {
    const child = spawn("sh", ["-c", command], { cwd, env: env(), detached: true });
    running.add(child);
    let output = "";
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${command} hangs:\n${output}`)), LIMIT_MS);
      const onText = (text) => {
        output += text;
        const [found] = pattern?.exec(output) ?? [];
        if (found === undefined) return;
        clearTimeout(timer);
        resolve(found);
      };
      child.stdout.setEncoding("utf8").on("data", onText);
      child.stderr.setEncoding("utf8").on("data", onText);
      child.on("close", (status) => {
        clearTimeout(timer);
        running.delete(child);
        if (status === 0) resolve(output);
        else reject(new Error(`${command} ended with ${status}:\n${output}`));
      });
    });
  }

  /** Sends a message to the page, whose hub is the local one; returns the answer. */
  async function chat(address) {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.context().route(`${HUB}/**`, (route) =>
      route.fulfill({
        status: 302,
        headers: {
          location: route.request().url().replace(HUB, hub.hub.origin),
          "access-control-allow-origin": "*",
        },
      }),
    );
    page.setDefaultTimeout(LIMIT_MS);
    await page.goto(address);
    await page.fill("#message", "What is the capital of France?");
    await page.click("#send");
    await page.waitForSelector("#messages li:nth-child(2)");
    await page.waitForSelector("#send:enabled");
    assert.equal(await page.locator("#state").textContent(), "");
    assert.deepEqual(faults, []);
    const text = await page.locator("#messages li").last().textContent();
    await page.close();
    return text;
  }

  test("five commands make an app that chats", async () => {
    const commands = commandsOfReadme();
    assert.ok(commands.length <= 5, commands.join("\n"));
    let cwd = empty;
    let answer;
    for (const command of commands) {
      if (command.startsWith("cd ")) {
        cwd = join(cwd, command.slice("cd ".length));
      } else if (command === "npm run dev") {
        // Colours are between the parts of an address.
        const address = await shell(`NO_COLOR=1 ${command}`, cwd, /http:\/\/[\w.]+:\d+\//);
        answer = await chat(address);
        for (const { pid } of running) process.kill(-pid);
      } else {
        const output = await shell(command, cwd);
        if (command.includes("inpage models")) assert.match(output, new RegExp(`^${MODEL} `, "m"));
      }
    }
    assert.match(answer, /[a-z]{3}/i);
    assert.ok(existsSync(join(cwd, "dist/index.html")), "the page is built");
    assert.ok(hub.cdn.requests.some(({ path }) => path.includes("SmolLM2-135M-Instruct")));
  });
});
