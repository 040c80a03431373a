//! The functions that `npm run bench` runs inside the page. They are sent there as text, so each is self-contained.
//! They return raw times in ms.

/** Runs in the page. Resolves with raw times in ms, or `{ error }`. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: it is sent to the page as text, so it cannot call other functions
export async function measureInPage({
  url,
  device,
  threads,
  tokens,
  promptTokens,
  contexts,
  contextsDefault,
  contextsEmulated,
  batchSizes,
  rounds,
}) {
  let engine;
  // Tasks of the page's own thread that would drop frames. There should be none, because the engine runs in a worker.
  const long_tasks_ms = [];
  const observer = new PerformanceObserver((list) => {
    long_tasks_ms.push(...list.getEntries().map(({ duration }) => duration));
  });
  observer.observe({ type: "longtask" });
  try {
    const { createEngine } = await import("/dist/index.js");
    const timed = async (work) => {
      const start = performance.now();
      const value = await work();
      return [performance.now() - start, value];
    };
    const load = () => timed(() => createEngine({ device, threads, model: { url } }));
    let info;
    const loads = [];
    // The first load downloads and compiles, the second one reads the cached file.
    for (let i = 0; i < 2; i++) {
      await engine?.dispose();
      let whole_ms;
      [whole_ms, engine] = await load();
      const answer = () =>
        engine.completions.create({ model: "default", prompt: "One", max_tokens: 1 });
      const [first_token_ms] = await timed(answer);
      info = await engine.info();
      loads.push({ whole_ms, first_token_ms, ...info.loadMs });
    }
    const decoded = Math.min(tokens, Math.floor(info.contextTokens / 2));
    const prompted = Math.min(promptTokens, info.contextTokens - decoded);

    const randomIds = (length) =>
      Array.from({ length }, () => Math.floor(Math.random() * info.vocabSize));
    const complete = async (fields) => {
      const body = {
        // A different prompt each time, so that the prefix cache does not help.
        ...{ model: "default", prompt: randomIds(prompted), max_tokens: decoded },
        ...{ ignore_eos: true, seed: 1 },
        ...{ stream: true, stream_options: { include_usage: true }, ...fields },
      };
      const asked = performance.now();
      let first;
      let last;
      let usage;
      for await (const chunk of await engine.completions.create(body)) {
        usage = chunk.usage ?? usage;
        if (chunk.choices.length === 0) continue;
        last = performance.now();
        first ??= last;
      }
      if (first === undefined) throw new Error("a completion without any text cannot be timed");
      // The first token ends the prefill; the others are decoded.
      return { first_ms: first - asked, decode_ms: last - first, usage };
    };
    const samples = {};
    for (const [name, temperature] of Object.entries({ greedy: 0, sampled: 1 })) {
      await complete({ temperature });
      samples[name] = [];
      for (let i = 0; i < rounds; i++) samples[name].push(await complete({ temperature }));
    }
    // A long prompt, and another one that differs only in its last tokens.
    const long = randomIds(Math.min(1000, info.contextTokens - 16));
    const first = async (prompt) => (await complete({ prompt, max_tokens: 1 })).first_ms;
    const repeated = {
      prompt_tokens: long.length,
      first_ms: await first(long),
      again_ms: await first([...long.slice(0, -4), ...randomIds(4)]),
    };
    const lengths = contexts ?? (info.softwareAdapter ? contextsEmulated : contextsDefault);
    const after = [];
    for (const length of lengths.filter((length) => length <= info.contextTokens)) {
      const prompt = randomIds(Math.min(length, info.contextTokens - decoded));
      after.push(await complete({ prompt, temperature: 0 }));
    }
    const batches = [];
    for (const n of batchSizes) {
      await complete({ n, temperature: 1, max_tokens: 2 });
      const { decode_ms, usage } = await complete({ n, temperature: 1 });
      batches.push({ n, decode_ms, tokens: usage.completion_tokens });
    }
    return { loads, info, samples, repeated, after, batches, long_tasks_ms };
  } catch (error) {
    return { error: error?.message ?? String(error) };
  } finally {
    await engine?.dispose();
  }
}

/** Runs in the page; resolves with the module's report, or `{ error }`. */
export function replayInPage({ url, steps, rounds }) {
  return new Promise((resolve) => {
    const worker = new Worker("/bench/replay_worker.js", { type: "module" });
    worker.onmessage = ({ data }) => {
      worker.terminate();
      resolve(data);
    };
    worker.onerror = (event) => {
      worker.terminate();
      resolve({ error: event.message || "the worker's script could not be loaded" });
    };
    worker.postMessage({ url, steps, rounds });
  });
}
