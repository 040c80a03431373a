//! Clients of an HTTP server that do what no library does: send a part of a request, or do not read the answer.

import { connect } from "node:net";

/** The head of a POST, with headers of its own. */
export function headOf(path, headers) {
  const lines = Object.entries({
    host: "localhost",
    "content-type": "application/json",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`;
}

/** A whole POST of `value` as JSON. */
export function postOf(path, value, headers = {}) {
  const body = JSON.stringify(value);
  return headOf(path, { "content-length": Buffer.byteLength(body), ...headers }) + body;
}

/** A connection that reads only when it is told to. `closed` resolves when it is closed, for whatever reason. */
export async function rawClient(origin) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.pause();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await Promise.race([new Promise((resolve) => socket.once("connect", resolve)), closed]);
  return { socket, closed };
}

/** Sends `text`, and resolves with what comes back until `end` matches or the connection is closed. */
export async function exchangeRaw(origin, text, end) {
  const { socket, closed } = await rawClient(origin);
  let answer = "";
  const matched = new Promise((resolve) => {
    socket.on("data", (piece) => {
      answer += piece;
      if (end?.test(answer)) resolve();
    });
  });
  socket.resume();
  socket.write(text);
  await Promise.race([matched, closed]);
  return { answer, socket, closed };
}
