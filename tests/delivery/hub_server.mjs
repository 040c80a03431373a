//! A local model hub. Like real hubs, it redirects files of repositories to another origin. Both origins record their requests.

import { once } from "node:events";
import { createServer } from "node:http";

/** `files`: bytes by their path on the CDN, such as `/owner/name/main/model.gguf`. */
export async function startHub(files) {
  const cdn = await listen((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const bytes = files[pathname];
    if (bytes === undefined) {
      response.writeHead(404).end();
      return;
    }
    const [, first] = /^bytes=(\d+)-/.exec(request.headers.range ?? "") ?? [];
    const start = Number(first ?? 0);
    const headers = {
      etag: `"${pathname}"`,
      "content-type": "application/octet-stream",
      "content-length": bytes.length - start,
    };
    if (first !== undefined) {
      headers["content-range"] = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
    }
    response.writeHead(first === undefined ? 200 : 206, headers);
    response.end(request.method === "HEAD" ? undefined : bytes.subarray(start));
  });
  const hub = await listen((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const place = pathname.replace(/^\/([^/]+\/[^/]+)\/resolve\//, "/$1/");
    // Like hubs with private repositories.
    if (hub.token && request.headers.authorization !== `Bearer ${hub.token}`) {
      response.writeHead(401).end();
      return;
    }
    hub.signature += 1;
    const location = `${cdn.origin}${place}?X-Amz-Signature=${hub.signature}`;
    response.writeHead(files[place] ? 302 : 404, { location }).end();
  });
  return {
    hub,
    cdn,
    close: () => Promise.all([hub.close(), cdn.close()]),
  };
}

/** A server that allows all other origins. `requests` has the method, path and headers of each request. */
async function listen(answer) {
  const requests = [];
  const server = createServer((request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", "authorization, range, if-range, x-key");
    response.setHeader("access-control-expose-headers", "etag, content-range");
    if (request.method === "OPTIONS") {
      response.writeHead(204).end();
      return;
    }
    requests.push({ method: request.method, path: request.url, headers: request.headers });
    answer(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    requests,
    signature: 0,
    token: undefined,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
