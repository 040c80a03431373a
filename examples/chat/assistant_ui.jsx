// A chat with a tool in the components of assistant-ui, without a server. The model is `model.gguf` beside the page.

import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  ComposerPrimitive,
  ErrorPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
} from "@assistant-ui/react";
import { useChatRuntime } from "@assistant-ui/react-ai-sdk";
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

const Roll = ({ args, result }) => (
  <p className="tool">{result && JSON.stringify({ ...args, ...result })}</p>
);

const UserMessage = () => (
  <MessagePrimitive.Root className="user">
    <MessagePrimitive.Parts />
  </MessagePrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root className="assistant">
    <MessagePrimitive.Parts components={{ tools: { by_name: { roll: Roll } } }} />
    <MessagePrimitive.Error>
      <ErrorPrimitive.Root role="alert">
        <ErrorPrimitive.Message />
      </ErrorPrimitive.Root>
    </MessagePrimitive.Error>
    <ActionBarPrimitive.Root hideWhenRunning autohide="not-last">
      <ActionBarPrimitive.Reload>Again</ActionBarPrimitive.Reload>
    </ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
);

function Chat() {
  const [load, setLoad] = useState();
  const runtime = useChatRuntime({ transport, onData: ({ data }) => setLoad(data) });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage }} />
        {load?.phase === "download" && <progress value={load.loadedBytes} max={load.totalBytes} />}
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
