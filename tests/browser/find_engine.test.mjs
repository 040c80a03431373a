//! Which tab answers a request of the service worker, with tabs and a clock that the tests control. In a browser:
//! `service_worker.test.mjs`.

import assert from "node:assert/strict";
import { beforeEach, describe, mock, test } from "node:test";
import { findEngine, nowListens } from "../../www/dist/service_worker/find_engine.js";

describe("a request of a tab", () => {
  /** Ports of the service worker's questions, by the id of the tab that got it. */
  let questions;
  /** Ids are new in each test: the service worker remembers tabs. */
  let number = 0;
  let own;
  let other;

  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ["setTimeout"] });
    number += 1;
    [own, other] = [`own ${number}`, `other ${number}`];
    questions = new Map();
  });

  /** Asks tabs with these ids for the engine that answers the request of `own`; `found()` is its tab once it is known. */
  async function ask(ids) {
    const clients = {
      matchAll: async () =>
        ids.map((id) => ({ id, postMessage: (_, [port]) => questions.set(id, port) })),
    };
    const wanted = { url: "https://site/v1", scope: "/", preferredId: own, excluded: new Set() };
    let answer = "none yet";
    const done = findEngine(clients, wanted).then((owner) => {
      answer = owner?.clientId;
      owner?.port.close();
    });
    await delivered();
    return { found: () => answer, done };
  }

  /** Lets messages between ports arrive. */
  const delivered = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };

  const say = async (id, type) => {
    questions.get(id).postMessage({ type });
    await delivered();
  };

  const pass = async (ms) => {
    mock.timers.tick(ms);
    await delivered();
  };

  test("goes to its own engine, which may answer a little later than others", async () => {
    const { found, done } = await ask([other, own]);
    await say(other, "accepted");
    await pass(29);
    assert.equal(found(), "none yet");
    await say(own, "accepted");
    await done;
    assert.equal(found(), own);
  });

  test("goes to another engine 30 ms after its answer, if the tab is not known", async () => {
    const { found, done } = await ask([other, own]);
    await say(other, "accepted");
    await pass(30);
    await done;
    assert.equal(found(), other);
  });

  test("goes to another engine a second after its answer, if the tab is known and does not answer", async () => {
    nowListens(own);
    const { found, done } = await ask([other, own]);
    await say(other, "accepted");
    await pass(999);
    assert.equal(found(), "none yet");
    await pass(1);
    await done;
    assert.equal(found(), other);
  });

  test("waits so long only once", async () => {
    nowListens(own);
    const first = await ask([other, own]);
    await say(other, "accepted");
    await pass(1000);
    await first.done;
    const second = await ask([other, own]);
    await say(other, "accepted");
    await pass(30);
    await second.done;
    assert.equal(second.found(), other);
  });

  test("waits for a tab that has answered before", async () => {
    const before = await ask([own]);
    await say(own, "declined");
    await pass(2000);
    await before.done;
    const { found, done } = await ask([other, own]);
    await say(other, "accepted");
    await pass(500);
    await say(own, "accepted");
    await done;
    assert.equal(found(), own);
  });

  test("does not wait for its own tab once that has declined", async () => {
    nowListens(own);
    const first = await ask([other, own]);
    await say(other, "accepted");
    await say(own, "declined");
    await first.done;
    assert.equal(first.found(), other);
    const second = await ask([other, own]);
    await say(own, "declined");
    await say(other, "accepted");
    await second.done;
    assert.equal(second.found(), other);
  });

  test("keeps the answer of another tab when the time for answers ends during the wait", async () => {
    nowListens(own);
    const { found, done } = await ask([other, own]);
    await pass(1500);
    await say(other, "accepted");
    await pass(500);
    await done;
    assert.equal(found(), other);
  });

  test("finds none if no tab accepts", async () => {
    const { found, done } = await ask([other, own]);
    await say(own, "declined");
    await pass(2000);
    await done;
    assert.equal(found(), undefined);
  });

  test("is not kept waiting by a tab that was closed", async () => {
    nowListens(own);
    const { found, done } = await ask([other]);
    await say(other, "accepted");
    await done;
    assert.equal(found(), other);
  });
});
