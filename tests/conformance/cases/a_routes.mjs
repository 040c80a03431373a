//! A. Routes, headers, CORS (specification 1).

import { equal, matches, ok } from "../check.mjs";
import { R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const withHeaders = (headers) => ({ method: "POST", headers, body: JSON.stringify(R()) });
const bytes = (text) => new TextEncoder().encode(text);
const JSON_TYPE = "application/json";

export default [
  {
    id: "001",
    title: "the routes and the JS door give the same answer",
    doors: ALL,
    async run(ctx) {
      const body = R({ temperature: 0 });
      const routes = ["/v1/completions", "/openai/v1/completions", "/v1/completions/?trace=1"];
      const answers = [];
      const requestIds = new Set();
      for (const route of routes) {
        const init = { headers: { "content-type": JSON_TYPE }, body: JSON.stringify(body) };
        const reply = await ctx.request(route, { method: "POST", ...init });
        equal(reply.status, 200, `${route}: status`);
        matches(
          reply.headers.get("content-type"),
          /^application\/json\b/,
          `${route}: content type`,
        );
        requestIds.add(reply.headers.get("x-request-id"));
        answers.push(reply.body);
      }
      equal(requestIds.size, routes.length, "different x-request-id");
      ok(!requestIds.has(null), "every response has an x-request-id");
      if (ctx.door === "page") answers.push(await ctx.complete(body));
      const keys = (object) => Object.keys(object).sort();
      for (const answer of answers) {
        equal(keys(answer), keys(answers[0]), "key set");
        equal(keys(answer.choices[0]), keys(answers[0].choices[0]), "key set of the choice");
        equal(answer.choices[0].text, answers[0].choices[0].text, "text");
      }
    },
  },
  {
    id: "002",
    title: "preflights are answered without authorization",
    // Pages cannot send the request header, and preflights do not reach a service worker.
    doors: ["native"],
    async run(ctx) {
      const asked = "authorization, content-type, x-stainless-lang, x-stainless-retry-count";
      for (const switches of [{}, { apiKey: "k1" }]) {
        await ctx.switches(switches);
        const { status, headers } = await ctx.request("/v1/completions", {
          method: "OPTIONS",
          headers: { "access-control-request-headers": asked },
        });
        equal(status, 204, "status");
        const allowed = headers.get("access-control-allow-headers")?.toLowerCase() ?? "";
        for (const name of asked.split(", ")) {
          ok(allowed.split(/\s*,\s*/).includes(name), `allows the header ${name}`, allowed);
        }
        matches(headers.get("access-control-allow-methods"), /\bPOST\b/, "allowed methods");
        ok(headers.get("access-control-allow-origin"), "Access-Control-Allow-Origin is there");
      }
    },
  },
  {
    id: "003",
    title: "GET on completions is not allowed",
    doors: ALL,
    async run(ctx) {
      const { status, headers, body } = await ctx.request("/v1/completions");
      equal([status, body.error?.code], [405, "method_not_allowed"], "status and code");
      matches(headers.get("allow"), /\bPOST\b/, "Allow");
    },
  },
  {
    id: "005",
    title: "unknown URLs",
    // The service worker leaves them to the site's own server (case 006).
    doors: ["native", "page"],
    async run(ctx) {
      const post = withHeaders({ "content-type": JSON_TYPE });
      // On the page's own origin, they are its server's (case 006).
      const site = ctx.door === "page" ? "https://inpage.invalid" : "";
      for (const [path, init] of [
        [`${site}/v1/nonsense`, post],
        [`${site}/v1`, { method: "GET" }],
        [`${site}/v1/chat/unknown`, post],
        ["/v1/audio/speech", post],
      ]) {
        const { status, body } = await ctx.request(path, init);
        equal([status, body?.error?.code], [404, "unknown_url"], `${path}: status and code`);
        matches(body.error.message, /\/chat\/completions, /, `${path}: the routes are named`);
      }
    },
  },
  {
    id: "006",
    title: "everything else is left to the network",
    doors: ["page", "sw"],
    async run(ctx) {
      const asset = await ctx.plainFetch(new URL("../asset.txt", import.meta.url).href);
      equal(asset.status, 200, "status of the asset");
      equal(await asset.text(), "from the network\n", "the asset");
      equal(asset.headers.get("x-request-id"), null, "the asset's x-request-id");
      for (const path of ["/v1/users/me", "/v1", "/v1/chat/unknown"]) {
        const own = await ctx.plainFetch(new URL(path, import.meta.url).href);
        equal(
          [own.status, await own.text()],
          [404, "Not found\n"],
          `${path}: the site's own answer`,
        );
      }
      const foreign = "https://example.invalid/v1/completions";
      const answered = await ctx
        .plainFetch(foreign, withHeaders({ "content-type": JSON_TYPE }))
        .then((response) => response.headers.get("x-request-id") ?? "")
        .catch(() => undefined);
      ok(
        !answered?.startsWith("req_"),
        "the foreign host is not answered by the runtime",
        answered,
      );
    },
  },
  {
    id: "007",
    title: "content types",
    doors: ALL,
    async run(ctx) {
      const post = async (type) => {
        const headers = type === undefined ? {} : { "content-type": type };
        // Bytes, because text would get a content type.
        const init = { method: "POST", headers, body: bytes(JSON.stringify(R())) };
        const { status, body } = await ctx.request("/v1/completions", init);
        return [status, body.error?.code];
      };
      for (const type of [
        "text/plain;charset=UTF-8",
        undefined,
        "application/x-www-form-urlencoded",
      ]) {
        equal(await post(type), [415, "unsupported_media_type"], `content type ${type}`);
      }
      for (const type of ["Application/JSON; charset=utf-8", "application/vnd.test+json"]) {
        equal(await post(type), [200, undefined], `content type ${type}`);
      }
    },
  },
  {
    id: "008",
    title: "without apiKey the Authorization header does not matter",
    doors: ALL,
    async run(ctx) {
      for (const headers of [
        {},
        { authorization: "Bearer x" },
        { authorization: "Basic zzz" },
        { authorization: "" },
      ]) {
        const all = { "content-type": JSON_TYPE, ...headers };
        const { status } = await ctx.request("/v1/completions", withHeaders(all));
        equal(status, 200, `Authorization ${headers.authorization}: status`);
      }
    },
  },
  {
    id: "009",
    title: "with apiKey every route but health requires it",
    doors: ALL,
    async run(ctx) {
      await ctx.switches({ apiKey: "k1" });
      const ask = async (key) => {
        const post = withHeaders({ "content-type": JSON_TYPE, ...key });
        const replies = [
          await ctx.request("/v1/completions", post),
          await ctx.request("/v1/models", { headers: key }),
        ];
        return replies.map(({ status, body }) => [status, body.error?.code]);
      };
      const unauthorized = [401, "invalid_api_key"];
      const bearer = (authorization) => ({ authorization });
      for (const wrong of [{}, bearer("Bearer k2"), bearer("k1"), { "x-api-key": "k2" }]) {
        equal(await ask(wrong), [unauthorized, unauthorized], JSON.stringify(wrong));
      }
      const welcome = [200, undefined];
      for (const right of [bearer("Bearer k1"), { "x-api-key": "k1" }]) {
        equal(await ask(right), [welcome, welcome], JSON.stringify(right));
      }
      const { status, body } = await ctx.request("/v1/health");
      equal([status, body], [200, { status: "ok" }], "health");
    },
  },
  {
    id: "010",
    title: "Accept has no effect on streaming",
    doors: ALL,
    async run(ctx) {
      const { response } = await ctx.stream(R(), { headers: { accept: "application/json" } });
      matches(response.headers.get("content-type"), /^text\/event-stream\b/, "content type");
    },
  },
];
