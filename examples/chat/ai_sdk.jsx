// A chat with a tool over `useChat` of the AI SDK, without a server. The model is `model.gguf` beside the page.

import { useChat } from "@ai-sdk/react";
import { DirectChatTransport, jsonSchema, ToolLoopAgent, tool } from "ai";
import { createInpage } from "inpage/ai-sdk";
import { useState } from "react";
import { createRoot } from "react-dom/client";

const sides = { type: "integer", minimum: 2, maximum: 20 };
const inputSchema = jsonSchema({ type: "object", properties: { sides }, required: ["sides"] });
const execute = (input) => ({ rolled: 1 + Math.floor(Math.random() * input.sides) });
const roll = tool({ description: "Rolls a die.", inputSchema, execute });

const inpage = createInpage({ model: "./model.gguf" });
const asks = ({ messages }) =>
  /\broll\b/i.test(JSON.stringify(messages.findLast(({ role }) => role === "user")));
const prepareStep = (step) => ({
  toolChoice: step.stepNumber === 0 && asks(step) ? "required" : "none",
});
const agent = new ToolLoopAgent({
  model: inpage(),
  tools: { roll },
  prepareStep,
  maxOutputTokens: 80,
});
const transport = inpage.withLoadProgress(new DirectChatTransport({ agent }));

function Chat() {
  const [load, setLoad] = useState();
  const { messages, sendMessage, stop, regenerate, status, error } = useChat({
    transport,
    onData: ({ data }) => setLoad(data),
  });
  const isLoading = status === "submitted" || status === "streaming";
  return (
    <form action={(form) => sendMessage({ text: form.get("text") })}>
      {messages.flatMap(({ id, role, parts }) =>
        parts.map(({ type, text, input, output }, i) => (
          <p key={id + i} className={type === "tool-roll" ? "tool" : role}>
            {text ?? (output && JSON.stringify({ ...input, ...output }))}
          </p>
        )),
      )}
      {load?.phase === "download" && <progress value={load.loadedBytes} max={load.totalBytes} />}
      {error && <p role="alert">{error.message}</p>}
      <input name="text" aria-label="Message" />
      <button type="submit" disabled={isLoading}>
        Send
      </button>
      <button type="button" onClick={stop} disabled={!isLoading}>
        Stop
      </button>
      <button type="button" onClick={() => regenerate()} disabled={isLoading}>
        Again
      </button>
    </form>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
