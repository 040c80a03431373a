//! Records which functions and blocks of the package's scripts run in Chromium: in pages, workers and service workers. Writes what
//! V8 counts, one JSON file per browser. `typescript.mjs` reads the files.

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** The time between two readings of the counts. A context that ends loses its counts since the last one. */
const INTERVAL_MS = 250;

/** A free port on the loopback address, for Chromium's debugging interface. */
export const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** A connection to the debugging interface, with calls by session. */
async function connect(port) {
  const version = await (await fetch(`http://127.0.0.1:${port}/json/version`)).json();
  const socket = new WebSocket(version.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("Chromium's debugging interface does not answer"));
  });
  const pending = new Map();
  let last = 0;
  const connection = {
    onEvent: (_method, _params, _sessionId) => {},
    /** Calls a method. `undefined` if the context has ended. */
    call(method, params = {}, sessionId = undefined) {
      return new Promise((resolve) => {
        if (socket.readyState !== WebSocket.OPEN) return resolve(undefined);
        pending.set(++last, resolve);
        socket.send(JSON.stringify({ id: last, method, params, sessionId }));
      });
    },
    close: () => socket.close(),
  };
  const giveUp = () => {
    for (const resolve of pending.values()) resolve(undefined);
    pending.clear();
  };
  socket.onclose = giveUp;
  socket.onmessage = ({ data }) => {
    const { id, result, method, params, sessionId } = JSON.parse(data);
    if (id === undefined) return connection.onEvent(method, params, sessionId);
    pending.get(id)?.(result);
    pending.delete(id);
  };
  return connection;
}

/** Counts of functions, by script. Functions that did not run are kept once, so that memory is bounded. */
class Counts {
  #scripts = new Map();

  add({ url, functions }) {
    const path =
      /^https?:\/\/[^/]+\/(dist\/.*\.js)$/.exec(url)?.[1] ??
      (/\/sw\.js$/.test(url) ? "dist/sw.js" : undefined);
    if (path === undefined) return;
    const known = this.#scripts.get(path) ?? new Map();
    this.#scripts.set(path, known);
    for (const it of functions) {
      // The same ranges with the same zeros add nothing.
      const key = JSON.stringify([
        it.functionName,
        it.isBlockCoverage,
        it.ranges.map(({ startOffset, endOffset, count }) => [startOffset, endOffset, count > 0]),
      ]);
      known.set(key, it);
    }
  }

  /** One list of scripts, each with all that was counted. */
  result() {
    return [...this.#scripts].map(([path, known]) => ({ path, functions: [...known.values()] }));
  }
}

/**
 * Begins to record in the browser that listens on `port`. `stop()` writes the file into `folder`, while the browser still
 * runs.
 */
export async function recordCoverage(port, folder) {
  const connection = await connect(port);
  const counts = new Counts();
  const sessions = new Set();
  const attach = (sessionId) =>
    connection.call(
      "Target.setAutoAttach",
      { autoAttach: true, waitForDebuggerOnStart: true, flatten: true },
      sessionId,
    );
  const read = async (sessionId) => {
    const answer = await connection.call("Profiler.takePreciseCoverage", {}, sessionId);
    for (const script of answer?.result ?? []) counts.add(script);
  };
  connection.onEvent = (method, params) => {
    if (method === "Target.detachedFromTarget") sessions.delete(params.sessionId);
    if (method !== "Target.attachedToTarget") return;
    const { sessionId } = params;
    sessions.add(sessionId);
    // In one order, because the context runs from the last call on.
    void attach(sessionId);
    void connection.call("Profiler.enable", {}, sessionId);
    const how = { callCount: true, detailed: true };
    void connection.call("Profiler.startPreciseCoverage", how, sessionId);
    void connection.call("Runtime.runIfWaitingForDebugger", {}, sessionId);
  };
  await attach();
  const timer = setInterval(() => {
    for (const sessionId of sessions) void read(sessionId);
  }, INTERVAL_MS);
  return {
    async stop() {
      clearInterval(timer);
      const limit = new Promise((resolve) => setTimeout(resolve, 2_000));
      await Promise.race([Promise.all([...sessions].map(read)), limit]);
      connection.close();
      mkdirSync(folder, { recursive: true });
      const name = `chromium-${process.pid}-${port}.json`;
      writeFileSync(join(folder, name), JSON.stringify(counts.result()));
    },
  };
}
