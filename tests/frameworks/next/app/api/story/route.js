import { getEngine } from "inpage";

export const dynamic = "force-dynamic";

export async function GET() {
  const engine = await getEngine();
  const body = { model: "default", prompt: "Once", max_tokens: 8, temperature: 0 };
  const { choices } = await engine.completions.create(body);
  return Response.json({ text: choices[0].text });
}
