"use client";
import { useEffect, useState } from "react";

export default function Story() {
  const [text, setText] = useState("");
  useEffect(() => {
    (async () => {
      const { getEngine } = await import("inpage");
      const files = { workerUrl: "/inpage/worker.js", model: "/inpage/tales.gguf" };
      const engine = await getEngine(files);
      const body = { model: "default", prompt: "Once", max_tokens: 8, temperature: 0 };
      const { choices } = await engine.completions.create(body);
      setText(choices[0].text);
    })();
  }, []);
  return <p id="story">{text}</p>;
}
