// A chat with a tool over `useChat` of the AI SDK, without a server.

import { useChat } from "@ai-sdk/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { Controls } from "./controls.jsx";
import { transport } from "./dice_agent.js";

function Chat() {
  const [load, setLoad] = useState();
  const onData = ({ data }) => setLoad(data);
  const { messages, sendMessage, stop, regenerate, status, error } = useChat({ transport, onData });
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
      <Controls again={() => regenerate()} {...{ load, error, isLoading, stop }} />
    </form>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
