//! Pauses of downloads: requests, responses and time-outs stop, and the pause is not a failure.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { systemClock } from "../../www/dist/model_source/transfer/clock.js";
import { DownloadPause } from "../../www/dist/model_source/transfer/pause.js";

let server;
let url;
/** Responses of the server that have not ended. */
let answers;
before(async () => {
  server = createServer((_, response) => {
    answers.push(response);
    server.emit("asked");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  url = `http://127.0.0.1:${server.address().port}/`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  answers = [];
});

const started = () => {
  const pause = new DownloadPause();
  return { pause, fetchFile: pause.gate(fetch) };
};

test("no request is sent during a pause", async () => {
  const { pause, fetchFile } = started();
  pause.pause();
  const answer = fetchFile(url, {});
  await turn();
  assert.equal(answers.length, 0);
  pause.resume();
  await once(server, "asked");
  answers[0].end("abc");
  assert.equal(await (await answer).text(), "abc");
});

test("a request that waits for its response is sent again after the pause", async () => {
  const { pause, fetchFile } = started();
  const answer = fetchFile(url, { headers: { range: "bytes=5-" } });
  await once(server, "asked");
  const closed = once(answers[0], "close");
  pause.pause();
  await closed;
  pause.resume();
  await once(server, "asked");
  assert.equal(answers[1].req.headers.range, "bytes=5-");
  answers[1].end("abc");
  assert.equal(await (await answer).text(), "abc");
});

test("a pause ends a response, and closes the server's connection", async () => {
  const { pause, fetchFile } = started();
  const asked = once(server, "asked");
  const answer = fetchFile(url, {});
  await asked;
  answers[0].write("abc");
  const reader = (await answer).body.getReader();
  await reader.read();
  const closed = once(answers[0], "close");
  pause.pause();
  await assert.rejects(reader.read());
  await closed;
});

test("an abort during a pause takes effect", async () => {
  const { pause, fetchFile } = started();
  const controller = new AbortController();
  pause.pause();
  const answer = fetchFile(url, { signal: controller.signal });
  const slept = pause.clocked(systemClock).sleep(1, controller.signal);
  controller.abort();
  await assert.rejects(answer, { name: "AbortError" });
  await assert.rejects(slept, { name: "AbortError" });
  assert.equal(answers.length, 0);
});

test("time does not pass during a pause", async () => {
  const pause = new DownloadPause();
  const begun = [];
  const clock = pause.clocked({
    ...systemClock,
    sleep(ms, signal) {
      begun.push(ms);
      return new Promise((resolve, reject) => {
        if (begun.length === 2) resolve();
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    },
  });
  let isOver = false;
  const over = clock.sleep(20, new AbortController().signal).then(() => {
    isOver = true;
  });
  await turn();
  pause.pause();
  pause.pause();
  await turn();
  assert.equal(isOver, false);
  assert.deepEqual(begun, [20]);
  pause.resume();
  await over;
  assert.deepEqual(begun, [20, 20]);
});
