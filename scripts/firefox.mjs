//! Starts headless Firefox with WebGPU and drives it with WebDriver BiDi, because playwright drives only its own builds of
//! Firefox.

import { spawn } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Remediable } from "./process.mjs";
import { temporaryFolder } from "./temporary_folder.mjs";

const START_LIMIT_MS = 60_000;

/** Some of these preferences enable WebGPU outside of Windows and macOS. */
const PREFERENCES = {
  "dom.webgpu.enabled": true,
  "dom.webgpu.workers.enabled": true,
  "dom.webgpu.service-workers.enabled": true,
  "gfx.webgpu.ignore-blocklist": true,
  "remote.active-protocols": 1,
  "browser.shell.checkDefaultBrowser": false,
  "datareporting.policy.dataSubmissionEnabled": false,
};

/** The executable: the one that FIREFOX names, or one in the usual places. */
export function findFirefox() {
  const places = ["/usr/bin/firefox-esr", "/usr/bin/firefox"];
  const found = process.env.FIREFOX ?? places.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Remediable(
    "Firefox was not found",
    "Install it (apt-get install firefox-esr), or set FIREFOX to its executable.",
  );
}

/** Node.js has a global WebSocket since version 22. Older versions use playwright's. */
async function webSocketClass() {
  if (globalThis.WebSocket) return globalThis.WebSocket;
  const require = createRequire(import.meta.url);
  return require(join(require.resolve("playwright-core"), "../lib/utilsBundle.js")).ws;
}

/** `{ open(url), messages, close() }`; `messages` collects what is written to the console, and uncaught errors. */
export async function launchFirefox() {
  const profile = temporaryFolder("inpage-firefox-");
  const lines = Object.entries(PREFERENCES).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
  );
  writeFileSync(join(profile, "user.js"), lines.join("\n"));
  const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"];
  const child = spawn(findFirefox(), args, { stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((resolve, reject) => {
    let output = "";
    child.stderr.on("data", (data) => {
      output += data;
      const url = /WebDriver BiDi listening on (ws:\S+)/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`Firefox exited: ${output}`)));
    setTimeout(() => reject(new Error(`Firefox did not start: ${output}`)), START_LIMIT_MS).unref();
  });
  const { send, messages, close } = await connect(`${address}/session`);
  return {
    messages,
    async open(url) {
      const { context } = await send("browsingContext.create", { type: "tab" });
      await send("browsingContext.navigate", { context, url, wait: "complete" });
      return new Page(send, context);
    },
    async close() {
      close();
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await ended;
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

async function connect(url) {
  const WebSocket = await webSocketClass();
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const calls = new Map();
  const messages = [];
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.method === "log.entryAdded") messages.push(message.params.text);
    const call = calls.get(message.id);
    if (call === undefined) return;
    calls.delete(message.id);
    if (message.type === "error") call.reject(new Error(`${message.error}: ${message.message}`));
    else call.resolve(message.result);
  };
  let last = 0;
  const send = (method, params) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      calls.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, method, params }));
    });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  return { send, messages, close: () => socket.close() };
}

class Page {
  #send;
  #context;
  constructor(send, context) {
    this.#send = send;
    this.#context = context;
  }

  /** The result of `run(argument)` in the page; both must be JSON. */
  async evaluate(run, argument) {
    const call = `Promise.resolve((${run})(${JSON.stringify(argument) ?? ""}))`;
    const answer = await this.#send("script.evaluate", {
      expression: `${call}.then((value) => JSON.stringify(value))`,
      target: { context: this.#context },
      awaitPromise: true,
    });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
    return answer.result.value === undefined ? undefined : JSON.parse(answer.result.value);
  }

  reload() {
    return this.#send("browsingContext.reload", { context: this.#context, wait: "complete" });
  }

  close() {
    return this.#send("browsingContext.close", { context: this.#context });
  }
}
