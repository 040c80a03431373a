//! The progress of downloads: sums, rates and remaining time, with a clock that the tests set.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DownloadProgress } from "../../www/dist/model_source/transfer/progress.js";

function started() {
  const clock = { ms: 0 };
  const reports = [];
  const progress = new DownloadProgress(
    (report) => reports.push(report),
    () => clock.ms,
  );
  return { clock, progress, last: () => reports.at(-1) };
}

test("files add up, and the total is unknown while one of them is", () => {
  const { progress, last } = started();
  const [a, b] = [progress.of("a"), progress.of("b")];
  a(10, 100);
  b(5, undefined);
  assert.deepEqual([last().loadedBytes, last().totalBytes], [15, undefined]);
  b(6, 50);
  assert.deepEqual([last().loadedBytes, last().totalBytes], [16, 150]);
  assert.equal(last().bytesPerSecond, undefined);
  assert.equal(last().remainingMs, undefined);
});

test("the rate is that of the last seconds and determines the remaining time", () => {
  const { clock, progress, last } = started();
  const a = progress.of("a");
  for (; clock.ms <= 10_000; clock.ms += 100) a(clock.ms * 2, 100_000);
  assert.equal(last().bytesPerSecond, 2000);
  assert.equal(last().remainingMs, 40_000);
  // Half as fast. After the window, the old rate has no effect.
  for (const loaded = last().loadedBytes; clock.ms <= 16_000; clock.ms += 100) {
    a(loaded + clock.ms - 10_000, 100_000);
  }
  assert.equal(last().bytesPerSecond, 1000);
});

test("bytes of an earlier visit do not count, and a restart is not negative", () => {
  const { clock, progress, last } = started();
  const a = progress.of("a");
  a(50_000, 100_000);
  clock.ms = 1000;
  a(51_000, 100_000);
  assert.equal(last().bytesPerSecond, 1000);
  clock.ms = 2000;
  a(0, 100_000);
  assert.equal(last().bytesPerSecond, 500);
  assert.equal(last().remainingMs, 200_000);
});

test("the phase is `waiting` while another tab downloads the file", () => {
  const { progress, last } = started();
  const a = progress.of("a");
  a(10, 100, true);
  assert.equal(last().phase, "waiting");
  a(20, 100);
  assert.equal(last().phase, "download");
});
