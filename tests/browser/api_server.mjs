//! A server that stands in for a remote API. It records every request, so that a test can assert that none reached it.

import { createServer } from "node:http";

/** Resolves with `{ origin, requests, close }`. `requests` has `[method, path, authorization]` of each, including preflights. */
export async function startApiServer() {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push([request.method, request.url, request.headers.authorization]);
    response.writeHead(200, {
      "content-type": "application/json",
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "authorization, content-type",
    });
    response.end(JSON.stringify({ from: "the network" }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    requests,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
