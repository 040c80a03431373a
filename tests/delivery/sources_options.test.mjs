//! The `model` option: hub names, mirrors, hashes and options of fetch. Also the cache keys of URLs. Sends no requests.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { cacheKey } from "../../www/dist/model_source/store/cache_key.js";
import { Redaction } from "../../www/dist/model_source/transfer/redact.js";
import { identityOf, selectKeys } from "../../www/dist/cache/selection.js";
import { resolveModel } from "../../www/dist/options/model.js";

const FILE = "https://example.org/dir/model.gguf";

describe("a cache key", () => {
  const SIGNED = {
    "S3, version 4":
      "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20261122&X-Amz-Date=1&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=SECRET&x-id=GetObject",
    "S3, version 2": "AWSAccessKeyId=A&Expires=1&Signature=SECRET",
    CloudFront: "Expires=1&Policy=P&Signature=SECRET&Key-Pair-Id=K",
    Azure: "sv=2024-11-04&st=1&se=2&sr=b&sp=r&spr=https&skoid=1&sktid=2&sig=SECRET",
    Google: "X-Goog-Algorithm=G&X-Goog-Credential=C&X-Goog-Date=1&X-Goog-Signature=SECRET",
    "a token": "token=SECRET&expires=1&token_path=%2Fdir",
  };
  for (const [name, query] of Object.entries(SIGNED)) {
    test(`has no signature of ${name}`, () => {
      assert.equal(cacheKey(`${FILE}?${query}`), FILE);
      const other = query.replace("SECRET", "ANOTHER").replace("=1", "=1234");
      assert.equal(cacheKey(`${FILE}?version=7&${other}`), `${FILE}?version=7`);
    });
  }

  test("keeps parameters that select a file, as they are written", () => {
    const plain = `${FILE}?file=a%20b&v=1&v=2&x=+&se=weights&sp=3&policy=open&expires=2030`;
    assert.equal(cacheKey(plain), plain);
    assert.notEqual(cacheKey(`${FILE}?v=1&sig=x`), cacheKey(`${FILE}?v=2&sig=x`));
  });

  const CREDENTIALS = [
    ...["private_token", "api_key", "apikey", "apiKey", "auth", "jwt", "key", "password", "sig"],
    ...["signature", "token", "access_token", "accessToken", "job-token", "X-Amz-Credential"],
    ...["X-Amz-Security-Token", "authorization", "client_secret", "x-api-key", "Passwd", "pwd"],
    ...["auth%5Ftoken", "subscription-key", "AWSAccessKeyId", "session_id", "AUTH", "hdnea"],
  ];
  test("has no credential, and keeps what is beside it", () => {
    for (const name of CREDENTIALS) {
      assert.equal(cacheKey(`${FILE}?${name}=SECRET`), FILE, name);
      const kept = "revision=v2&download=true";
      assert.equal(cacheKey(`${FILE}?revision=v2&${name}=SECRET&download=true`), `${FILE}?${kept}`);
      assert.equal(cacheKey(`${FILE}?${name}=SECRET;v=1`), `${FILE}?v=1`, "separated by ;");
      const proxy = `https://proxy.example/get?url=`;
      const behind = cacheKey(`${proxy}${encodeURIComponent(`${FILE}?v=1&${name}=SECRET`)}&x=1`);
      assert.equal(behind, `${proxy}${encodeURIComponent(`${FILE}?v=1`)}&x=1`);
      assert.equal(
        cacheKey(`https://proxy.example/?${FILE}?${name}=SECRET`),
        `https://proxy.example/?${encodeURIComponent(FILE)}`,
      );
    }
  });

  test("keeps names that resemble those of credentials, and a key that names a file", () => {
    const plain = `${FILE}?tokenizer=v2&author=x&monkey=1&sigma=2&passage=3&keys=4&design=5&id=6`;
    assert.equal(cacheKey(plain), plain);
    const file = "https://example.org/get?key=models%2Ftiny.gguf";
    assert.equal(cacheKey(`${file}&token=SECRET`), file);
    const proxy = `https://proxy.example/get?url=${encodeURIComponent(`${FILE}?v=1`)}`;
    assert.equal(cacheKey(proxy), proxy);
  });

  test("stays the same when it is computed again", () => {
    for (const query of [...Object.values(SIGNED), "key=SECRET&v=1;w=2", "sig=S&se=1"]) {
      const key = cacheKey(`${FILE}?version=7&${query}`);
      assert.equal(cacheKey(key), key);
    }
  });

  test("omits parameters that the app names, the fragment, and a password", () => {
    const url = "https://user:secret@example.org/dir/model.gguf?Session=1&id=2#part";
    assert.equal(cacheKey(url, ["session"]), `${FILE}?id=2`);
  });
});

test("failures name a URL without its query and password, in stack and cause as well", async () => {
  const url = "https://user:SECRET@example.org/m.gguf?v=1&jwt=SECRET#SECRET";
  const error = new TypeError(`${url} answered 403`, { cause: new Error(`refused: ${url}`) });
  const redaction = new Redaction(url);
  await assert.rejects(redaction.failure(Promise.reject(error)), (failure) => {
    assert.equal(failure.message, "https://example.org/m.gguf answered 403");
    assert.doesNotMatch(inspect(failure), /SECRET|v=1/);
    return true;
  });
});

describe("options that cannot be used", () => {
  for (const model of [
    "models/m?token=SECRET://",
    "https://u:SECRET@example.org/dir/?key=SECRET",
    "https://huggingface.co/o/n/blob/main/m.gguf?token=SECRET",
  ]) {
    test(`are named without secrets: ${model.replace(/SECRET/g, "...")}`, () => {
      assert.throws(
        () => resolveModel(model),
        (error) => !error.message.includes("SECRET"),
      );
    });
  }
});

describe("a name on the hub", () => {
  const hub = "https://huggingface.co";
  const at = (model, options) => resolveModel(model, options).location;

  test("is a file, or a folder", () => {
    const file = at("hf:owner/some.name/dir/model.Q4_0.gguf");
    assert.deepEqual(file.urls, [`${hub}/owner/some.name/resolve/main/dir/model.Q4_0.gguf`]);
    assert.equal(file.ggufName, "model.Q4_0.gguf");
    for (const model of ["hf:owner/name", "hf://owner/name", { folder: "hf:owner/name" }]) {
      assert.deepEqual(at(model).urls, [`${hub}/owner/name/resolve/main/`]);
      assert.equal(at(model).ggufName, undefined);
      assert.equal(resolveModel(model).id, "name");
    }
  });

  test("has a revision, also one with a slash", () => {
    const { urls } = at("hf:owner/name/m.gguf@refs/pr/1");
    assert.deepEqual(urls, [`${hub}/owner/name/resolve/refs%2Fpr%2F1/m.gguf`]);
    assert.deepEqual(at("hf:owner/name@v1.0").urls, [`${hub}/owner/name/resolve/v1.0/`]);
    assert.equal(resolveModel("hf:owner/name@v1.0").id, "name");
  });

  test("is resolved at the hub that the app names, and the token is only for that origin", () => {
    const options = { baseURL: "https://hub.example.com/mirror", token: "hf_secret" };
    const location = at("hf:owner/name/m.gguf", options);
    assert.deepEqual(location.urls, [
      "https://hub.example.com/mirror/owner/name/resolve/main/m.gguf",
    ]);
    assert.deepEqual(location.requests.token, {
      origin: "https://hub.example.com",
      value: "hf_secret",
    });
  });

  test("refuses what it does not understand, and says what to write", () => {
    for (const model of ["hf:name", "hf:owner/name@main/m.gguf", "hf:", "hf:a/b?c"]) {
      assert.throws(() => at(model), /write "hf:OWNER\/NAME\/FILE\.gguf"/, model);
    }
    assert.throws(() => at("Qwen/Qwen3-0.6B"), /write "hf:Qwen\/Qwen3-0\.6B\/FILE\.gguf"/);
    assert.throws(
      () => at(`${hub}/owner/name/blob/v2/dir/m.gguf`),
      /is a web page of the model hub and not a file: write "hf:owner\/name\/dir\/m\.gguf@v2"/,
    );
    assert.throws(() => at({ folder: `${hub}/owner/name` }), /or "hf:owner\/name" for a folder/);
    assert.deepEqual(at(`${hub}/owner/name/resolve/main/m.gguf?download=true`).urls.length, 1);
  });

  test("needs an encrypted connection for a token", () => {
    const options = { baseURL: "http://hub.example.com", token: "x" };
    assert.throws(() => at("hf:o/n", options), /hub\.token would be sent .* in the clear/);
    assert.ok(at("hf:o/n", { baseURL: "http://localhost:1234", token: "x" }));
    assert.throws(() => at("hf:o/n", { token: "a b" }), /hub\.token/);
    assert.throws(() => at("hf:o/n", { baseURL: "no url" }), /hub\.baseURL must be a URL/);
  });
});

describe("a model's options", () => {
  test("name mirrors in order", () => {
    const { id, location } = resolveModel({
      url: ["https://a.example/x/m.gguf", new URL("https://b.example/m.gguf")],
    });
    assert.equal(id, "m");
    assert.deepEqual(location.urls, ["https://a.example/x/m.gguf", "https://b.example/m.gguf"]);
    assert.throws(() => resolveModel({ url: [] }), /url names no URL/);
  });

  test("give the hash of one file, or of several by name", () => {
    const hash = "AB".repeat(32);
    const { location } = resolveModel({ url: FILE, sha256: hash });
    assert.deepEqual(location.sha256, { "model.gguf": hash.toLowerCase() });
    const folder = { folder: "https://example.org/m", sha256: hash };
    assert.throws(() => resolveModel(folder), /has several files: give their hashes by name/);
    const byName = { ...folder, sha256: { "model.safetensors": hash } };
    assert.deepEqual(resolveModel(byName).location.sha256, {
      "model.safetensors": hash.toLowerCase(),
    });
    assert.throws(() => resolveModel({ url: FILE, sha256: "12" }), /64 hexadecimal digits/);
    assert.throws(() => resolveModel({ file: new Blob([]), sha256: hash }), /local files/);
  });

  test("pass options of fetch through, and refuse those that the download needs itself", () => {
    const fetch = {
      headers: { "X-Key": "1" },
      credentials: "include",
      referrerPolicy: "no-referrer",
    };
    const { requests } = resolveModel({ url: FILE, fetch }).location;
    assert.deepEqual(requests.headers, [["x-key", "1"]]);
    assert.deepEqual(requests.init, { credentials: "include", referrerPolicy: "no-referrer" });
    assert.ok(structuredClone(requests));
    const refused = (fetch, pattern) =>
      assert.throws(() => resolveModel({ url: FILE, fetch }), pattern);
    refused({ headers: { Range: "bytes=0-1" } }, /fetch\.headers must not contain range/);
    refused({ method: "POST" }, /fetch\.method cannot be set: fetch takes headers/);
    refused({ credentials: "always" }, /fetch\.credentials has an invalid value/);
  });

  test("say that a folder is not a file", () => {
    assert.throws(() => resolveModel("https://example.org/dir/"), /write \{ folder: /);
    assert.throws(() => resolveModel("example.gguf"), /"example\.gguf" is not a URL/);
  });
});

test("a model's identity does not depend on signatures, headers and tokens", () => {
  const identity = (...options) => JSON.stringify(identityOf(resolveModel(...options).location));
  const signed = (signature, key) => ({
    url: `${FILE}?v=1&sig=${signature}`,
    fetch: { headers: { "x-key": key } },
  });
  assert.equal(identity(signed("a", "1")), identity(signed("b", "2"), { token: "x" }));
  assert.notEqual(identity(signed("a", "1")), identity(`${FILE}?v=2`));
  assert.notEqual(identity(FILE), identity({ url: FILE, sha256: "0".repeat(64) }));
  assert.doesNotMatch(identity(signed("SECRET", "SECRET")), /SECRET/);
});

describe("the files of a cached model", () => {
  const matches = (model, keys) => keys.filter(selectKeys(model));

  test("are one file, whatever its signature", () => {
    const keys = [FILE, `${FILE}?v=2`, "https://example.org/dir/other.gguf"];
    assert.deepEqual(matches(`${FILE}?sig=1#x`, keys), [FILE]);
    assert.deepEqual(matches({ url: `${FILE}?v=2&s=3`, ignoreQuery: ["s"] }, keys), [
      `${FILE}?v=2`,
    ]);
  });

  test("are all parts of a split file", () => {
    const part = (n, of = 2) => `https://example.org/m-0000${n}-of-0000${of}.gguf`;
    const keys = [part(1), part(2), part(1, 3), FILE];
    assert.deepEqual(matches(part(2), keys), [part(1), part(2)]);
  });

  test("are the files directly in a folder", () => {
    const folder = "https://huggingface.co/o/n/resolve/main";
    const keys = [`${folder}/config.json`, `${folder}/m.safetensors`, `${folder}/dir/a.json`, FILE];
    assert.deepEqual(matches("hf:o/n", keys), keys.slice(0, 2));
    assert.deepEqual(matches(`${folder}/config.json`, keys), keys.slice(0, 1));
  });
});

describe("picked files", () => {
  /** A file as a picker of folders returns it. */
  const picked = (path) => {
    const file = new File(["x"], path.split("/").at(-1));
    return Object.defineProperty(file, "webkitRelativePath", { value: path });
  };
  const namesOf = (paths) => {
    const { location } = resolveModel({ files: paths.map(picked) });
    return location.files.map(({ name }) => name);
  };

  test("keep the subfolder where a file above has the same name", () => {
    const paths = ["m/1_Pooling/config.json", "m/config.json", "m/sub/tokenizer.json"];
    assert.deepEqual(namesOf(paths), ["1_Pooling/config.json", "config.json", "tokenizer.json"]);
    assert.deepEqual(namesOf(["a/b/config.json", "a/b/tokenizer.json"]), [
      "config.json",
      "tokenizer.json",
    ]);
  });
});
