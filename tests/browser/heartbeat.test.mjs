//! The heartbeat's limits, and how often a request may break its engine, with a clock that the tests move. What happens to
//! requests when a worker hangs: `hangs.test.mjs`.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, mock, test } from "node:test";
import { exchange } from "../../www/dist/exchange/requester.js";
import { HEARTBEAT, Heartbeat } from "../../www/dist/thread/heartbeat.js";

describe("the heartbeat", () => {
  const { beatMs, maxSilentBeats } = HEARTBEAT;
  let onBeat;
  let questions;
  let failures;
  let heartbeat;
  beforeEach(() => {
    onBeat = undefined;
    mock.method(globalThis, "setInterval", (run) => {
      onBeat = run;
      return 1;
    });
    mock.method(globalThis, "clearInterval", () => {
      onBeat = undefined;
    });
    questions = [];
    failures = [];
    heartbeat = new Heartbeat(
      (beat) => questions.push(beat),
      (failure) => failures.push(failure),
    );
  });
  const beats = (count) => {
    for (let beat = 0; beat < count; beat++) onBeat?.();
  };
  afterEach(() => mock.restoreAll());
  const answer = (activity, operation) =>
    heartbeat.take({ beat: questions.at(-1), activity, operation });

  test("asks nothing while the worker has nothing to do", () => {
    beats(1000);
    assert.deepEqual(questions, []);
    heartbeat.expect("requests");
    answer("idle");
    beats(1);
    answer("requests");
    beats(1);
    answer("idle");
    const asked = questions.length;
    beats(1000);
    assert.deepEqual([asked, questions.length, failures], [3, 3, []]);
  });

  for (const [what, activity, ms] of [
    ["idle", undefined, 10_000],
    ["with requests", "requests", 60_000],
    ["that loads", "load", 300_000],
  ]) {
    test(`a worker ${what} is lost after ${ms / 1000} s of silence`, () => {
      heartbeat.expect(activity ?? "requests");
      if (activity) {
        answer("idle");
        beats(1);
      }
      beats(ms / beatMs);
      assert.deepEqual(failures, []);
      beats(1);
      assert.equal(failures[0].code, "internal_error");
      assert.match(failures[0].message, new RegExp(`has not answered for ${ms / 1000} s`));
      beats(1000);
      assert.equal(failures.length, 1);
    });
  }

  test("a worker may be silent for four times its longest step", () => {
    heartbeat.expect("requests");
    answer("idle");
    const longest = maxSilentBeats.requests - 1;
    beats(1 + longest);
    answer("requests");
    beats(1 + 4 * longest);
    assert.deepEqual(failures, []);
    beats(1);
    assert.equal(failures.length, 1);
  });

  test("a load that was long says nothing about requests", () => {
    heartbeat.expect("load");
    answer("idle");
    beats(maxSilentBeats.load);
    answer("requests");
    beats(1 + maxSilentBeats.requests);
    assert.deepEqual(failures, []);
    beats(1);
    assert.equal(failures.length, 1);
  });

  test("a healthy worker is kept, however long its requests take", () => {
    heartbeat.expect("requests");
    for (let operation = 0; operation < 1000; operation++) {
      answer("requests", operation);
      beats(1);
    }
    assert.deepEqual(failures, []);
  });

  test("an operation that the GPU does not finish is a loss, although the worker answers", () => {
    heartbeat.expect("requests");
    for (let beat = 0; beat <= maxSilentBeats.requests; beat++) {
      answer("requests", 7);
      beats(1);
      assert.equal(failures.length, beat < maxSilentBeats.requests ? 0 : 1);
    }
    assert.equal(failures[0].code, "device_lost");
    assert.match(failures[0].message, /has not finished an operation for 60 s/);
  });

  test("an operation that ended before the next beat begins its count anew", () => {
    heartbeat.expect("requests");
    for (let beat = 0; beat < 10 * maxSilentBeats.requests; beat++) {
      answer("requests", Math.floor(beat / (maxSilentBeats.requests / 2)));
      beats(1);
    }
    assert.deepEqual(failures, []);
  });

  test("after the end nothing is asked", () => {
    heartbeat.expect("requests");
    heartbeat.end();
    heartbeat.expect("requests");
    beats(1000);
    assert.deepEqual([questions.length, failures], [1, []]);
  });
});

describe("a request whose engines break", () => {
  const request = {
    ...{ method: "POST", url: "http://localhost/v1/completions", headers: [] },
    body: new Uint8Array(),
  };
  /** A connection to an engine that is lost after `pieces` pieces. Time passes before. */
  function breaking(code, pieces, clock) {
    const { port1, port2 } = new MessageChannel();
    const lost = new AbortController();
    const send = (message) => port2.postMessage(message);
    port2.onmessage = ({ data }) => {
      if (data.type !== "request") return;
      if (pieces > 0) {
        send({ type: "head", status: 200, headers: [["content-type", "text/event-stream"]] });
        for (let piece = 0; piece < pieces; piece++) {
          send({ type: "chunk", bytes: new Uint8Array([10, 10]), position: "p" });
        }
      }
      clock.ms += 3_600_000;
      send({ type: "lost", failure: { code, message: "it hangs" } });
      port2.close();
    };
    return { port: port1, lost: lost.signal };
  }

  for (const [what, code, pieces, runs] of [
    ["is given up after three that gave no piece, however long that took", "internal_error", 0, 3],
    ["goes on after engines that gave a piece each", "internal_error", 1, 20],
    ["goes on after engines that were closed or replaced", "engine_unavailable", 0, 20],
  ]) {
    test(what, async (context) => {
      const clock = { ms: 0 };
      context.mock.method(performance, "now", () => clock.ms);
      let count = 1;
      const reconnect = async () => {
        if (++count > 20) throw new Error("there is no other engine");
        return breaking(code, pieces, clock);
      };
      const failure = await exchange(breaking(code, pieces, clock), request, {
        transport: "chunks",
        reconnect,
      }).then(
        (response) => response.text(),
        ({ failure }) => failure.message,
      );
      assert.equal(Math.min(count, 20), runs);
      assert.equal(/happened 3 times in a row/.test(failure), runs === 3, failure);
    });
  }
});
