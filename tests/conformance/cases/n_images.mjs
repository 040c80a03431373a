//! N. Images (specification 4.2, 18.2 and 20.2). The cases run with a model that sees.

import { C, CHAT } from "../chat.mjs";
import { equal, ok } from "../check.mjs";
import { R } from "../context.mjs";
import { ALL } from "../doors.mjs";
import { bmp, dataUrl, noise, png } from "../image_files.mjs";

const P = dataUrl(png(noise(1)), "png");
const OTHER = dataUrl(png(noise(2)), "png");
const IMAGE = "<image>";

const image = (url = P) => ({ type: "image_url", image_url: { url } });
const text = (text) => ({ type: "text", text });
const user = (...content) => ({ role: "user", content });

const imageCase = (id, title, run) => ({ id, title, doors: ALL, purpose: "sees", run });

/** Text and log-probabilities of a completion at temperature 0. */
async function answer(ctx, prompt, images) {
  const body = R({ prompt, images, temperature: 0, max_tokens: 4, logprobs: 3 });
  const { choices } = await ctx.completion(body);
  return JSON.stringify(choices[0]);
}

const promptTokens = async (api, body) => (await api.completion(body)).usage.prompt_tokens;

export default [
  imageCase("242", "an image in the place of its placeholder", async (ctx) => {
    const plain = await promptTokens(ctx, R({ prompt: "ab" }));
    const body = R({ prompt: `a${IMAGE}b`, images: [P], echo: true });
    const { choices, usage } = await ctx.completion(body);
    ok(usage.prompt_tokens > plain, "prompt_tokens with an image");
    ok(choices[0].text.startsWith(`a${IMAGE}b`), "the echoed placeholder");
  }),
  imageCase("243", "images that do not fit their prompt, or are none", async (ctx) => {
    const svg = `data:image/png;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg"/>')}`;
    const truncated = dataUrl(png(noise(1)).slice(0, 60), "png");
    for (const [prompt, images] of [
      [IMAGE, [P, P]],
      [IMAGE + IMAGE, [P]],
      ["none", [P]],
      [IMAGE, ["http://example.com/a.png"]],
      [IMAGE, ["data:image/png;base64,A"]],
      [IMAGE, [truncated]],
      [IMAGE, [svg]],
    ]) {
      await ctx.refused(R({ prompt, images }), 400, "invalid_value", "images");
    }
  }),
  imageCase("244", "images of several prompts", async (ctx) => {
    await ctx.completion(R({ prompt: [IMAGE, "x", IMAGE], images: [P, P] }));
    await ctx.completion(R({ prompt: [IMAGE, "x"], images: [[P], []] }));
    const exchanged = R({ prompt: [IMAGE, "x"], images: [[], [P]] });
    await ctx.refused(exchanged, 400, "invalid_value", "images");
  }),
  imageCase("245", "the answer depends on the image", async (ctx) => {
    const prompt = `a${IMAGE}b`;
    const first = await answer(ctx, prompt, [P]);
    const other = await answer(ctx, prompt, [OTHER]);
    ok(first !== other, "answers to different images");
    equal(await answer(ctx, prompt, [P]), first, "the first image again");
    equal(await answer(ctx, prompt, [OTHER]), other, "the other one again");
  }),
  imageCase("246", "lossless formats", async (ctx) => {
    const prompt = `a${IMAGE}b`;
    const same = dataUrl(bmp(noise(1)), "bmp");
    equal(await answer(ctx, prompt, [same]), await answer(ctx, prompt, [P]), "png and bmp");
  }),
  imageCase("247", "images in chat", async (ctx) => {
    const chat = ctx.at(CHAT);
    const tokens = (...content) => promptTokens(chat, C({ messages: [user(...content)] }));
    const plain = await tokens(text("a"));
    const one = await tokens(text("a"), image());
    ok(one > plain, "prompt_tokens with an image");
    ok((await tokens(image(), text("a"), image())) > one, "prompt_tokens with two images");
    ok((await tokens(text(IMAGE), image())) >= one, "a placeholder in a text");
    const messages = [user(text("a"), image())];
    await chat.stream(C({ messages }));
    for (const wrong of [
      user(image("http://example.com/a.png")),
      { role: "assistant", content: [image()] },
    ]) {
      await chat.refused(C({ messages: [wrong] }), 400, null, "messages");
    }
  }),
  imageCase("248", "images in responses", async (ctx) => {
    const responses = ctx.at("/v1/responses");
    const body = (part) => ({
      model: "default",
      input: [user({ type: "input_image", ...part })],
      max_output_tokens: 4,
    });
    await responses.completion(body({ image_url: P }));
    const stored = body({ file_id: "file-1" });
    await responses.refused(stored, 400, "unsupported_parameter", "input");
  }),
  imageCase("249", "a second question about an image", async (ctx) => {
    const prompt = `${IMAGE}${"What is in this picture? ".repeat(3)}`;
    const first = await ctx.completion(R({ prompt, images: [P] }));
    const { usage } = await ctx.completion(R({ prompt: `${prompt}And why?`, images: [P] }));
    ok(usage.prompt_tokens > first.usage.prompt_tokens, "tokens of the second question");
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    ok(cached < usage.prompt_tokens, "cached tokens");
  }),
  imageCase("251", "the tokens of images are counted", async (ctx) => {
    const messages = [user(text("a"), image(), image(OTHER))];
    const expected = await promptTokens(ctx.at(CHAT), C({ messages }));
    const count = (route, body) => ctx.at(`/v1/${route}`).completion({ model: "default", ...body });
    const tokens = await count("tokenize", { messages });
    equal([tokens.count, tokens.tokens.length], [expected, expected], "tokenize");
    const parts = [P, OTHER].map((url) => ({ type: "input_image", image_url: url }));
    const input = [user({ type: "input_text", text: "a" }, ...parts)];
    const counted = await count("responses/input_tokens", { input });
    equal(counted.input_tokens, expected, "input_tokens");
    const source = (url) => ({ type: "image", source: { type: "url", url } });
    const turns = [user(text("a"), source(P), source(OTHER))];
    const inMessages = await count("messages/count_tokens", { messages: turns });
    equal(inMessages.input_tokens, expected, "count_tokens");
  }),
];
