// A chat with a tool over `useChat` of inpage/react. The model is `model.gguf` beside the page.

import { createRoot } from "react-dom/client";
import { useChat } from "inpage/react";

const sides = { type: "integer", minimum: 2, maximum: 20 };
const parameters = { type: "object", properties: { sides }, required: ["sides"] };
const tools = [
  { type: "function", function: { name: "roll", description: "Rolls a die.", parameters } },
];

function Chat() {
  const { messages, send, stop, regenerate, isLoading, error, progress } = useChat({
    engine: { model: "./model.gguf" },
    body: { tools, max_tokens: 80 },
    onToolCall: (call) => ({ rolled: 1 + Math.floor(Math.random() * call.arguments.sides) }),
  });
  const submit = (form) => {
    const text = form.get("text");
    send(text, /\broll\b/i.test(text) ? { tool_choice: "required" } : { tool_choice: "none" });
  };
  return (
    <form action={submit}>
      {messages.map(({ role, content, tool_calls: calls }, i) => (
        <p key={i} className={role}>
          {content}
          {calls?.map((call) => `${call.function.name}(${call.function.arguments})`)}
        </p>
      ))}
      {progress?.phase === "download" && (
        <progress value={progress.loadedBytes} max={progress.totalBytes} />
      )}
      {error && <p role="alert">{error.message}</p>}
      <input name="text" aria-label="Message" />
      <button type="submit" disabled={isLoading}>
        Send
      </button>
      <button type="button" onClick={stop} disabled={!isLoading}>
        Stop
      </button>
      <button
        type="button"
        onClick={() => regenerate({ tool_choice: "none" })}
        disabled={isLoading}
      >
        Again
      </button>
    </form>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
