//! Types, checked by the compiler and never run: prompts of the Prompt API.

import { createLanguageModel, type PromptMessage } from "../../www/dist/prompt_api/index.js";

const model = createLanguageModel({ model: "smolvlm-256m-instruct" });
const session = await model.create({
  expectedInputs: [{ type: "image", languages: ["en"] }, { type: "text" }],
  samplingMode: "slightly-creative",
  monitor: (target) => {
    target.ondownloadprogress = ({ type }) => type.trim();
  },
});
declare const video: HTMLVideoElement;
declare const frame: VideoFrame;
const messages: PromptMessage[] = [
  {
    role: "user",
    content: [
      { type: "text", value: "What is it?" },
      { type: "image", value: new Blob([]) },
      { type: "image", value: new Uint8Array(3) },
      { type: "image", value: video },
      { type: "image", value: frame },
    ],
  },
];
(await session.prompt(messages)).trim();
(session.samplingMode ?? "balanced").trim();

// @ts-expect-error: an image is no address
session.prompt([{ role: "user", content: [{ type: "image", value: "a.png" }] }]);
// @ts-expect-error: a type that does not exist
model.create({ expectedInputs: [{ type: "soup" }] });
