//! Lets a worker handle its waiting events between two computations.

import { platform } from "../platform.js";

const { port1, port2 } = new MessageChannel();
const waiting: (() => void)[] = [];
port1.onmessage = () => waiting.shift()?.();

/** Resolves once the events that wait now were handled. A timer would wait for 4 ms. */
export function nextTurn(): Promise<void> {
  const turn = platform().nextTurn?.();
  if (turn !== undefined) return turn;
  return new Promise((resolve) => {
    waiting.push(resolve);
    port2.postMessage(undefined);
  });
}
