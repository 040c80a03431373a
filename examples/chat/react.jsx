// A chat with a tool over `useChat` of inpage/react. The model is `model.gguf` beside the page.

import { createRoot } from "react-dom/client";
import { useChat } from "inpage/react";
import { Controls } from "./controls.jsx";
import { asksToRoll, parameters, roll } from "./dice.js";

const description = "Rolls a die.";
const tools = [{ type: "function", function: { name: "roll", description, parameters } }];

function Chat() {
  const { messages, send, stop, regenerate, isLoading, error, progress } = useChat({
    engine: { model: "./model.gguf" },
    body: { tools, max_tokens: 80 },
    onToolCall: (call) => roll(call.arguments),
  });
  const submit = (form) => {
    const text = form.get("text");
    send(text, { tool_choice: asksToRoll(text) ? "required" : "none" });
  };
  const again = () => regenerate({ tool_choice: "none" });
  return (
    <form action={submit}>
      {messages.map(({ role, content, tool_calls: calls }, i) => (
        <p key={i} className={role}>
          {content}
          {calls?.map((call) => `${call.function.name}(${call.function.arguments})`)}
        </p>
      ))}
      <Controls load={progress} {...{ error, isLoading, stop, again }} />
    </form>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
