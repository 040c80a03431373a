// A chat with a tool over `useChat` of the AI SDK, without a server.

import { useChat } from "@ai-sdk/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { transport } from "./dice_agent.js";

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
