//! `GET /models` and `GET /models/{id}` of an engine with several models: the entries, in the form of the endpoint's own, and in
//! place of those in the answer of one model's endpoint.

import type { ModelCard } from "../generated/types.js";
import type { NamedModel } from "../options/several_models.js";

/** An entry of the list. `capabilities` are missing until they are known, `aliases` if there are none. */
export type ListedModel = Omit<ModelCard, "capabilities"> & {
  capabilities?: readonly string[];
  aliases?: readonly string[];
};

/** A model as far as it is known. */
export interface KnownModel extends NamedModel {
  /** The entry of its own endpoint when it was ready. */
  card: ModelCard | undefined;
}

/** The capabilities of the model; `undefined` if that is not known before its first load. */
export function capabilitiesOf({ card, capabilities }: KnownModel): readonly string[] | undefined {
  return card?.capabilities ?? capabilities;
}

/** The entry of a model. `now` is that of its own endpoint, if it has one. */
export function listed(
  model: KnownModel,
  status: ModelCard["status"],
  created: number,
  now: ModelCard | undefined,
): ListedModel {
  const capabilities = capabilitiesOf(model);
  return {
    ...{ id: model.name, object: "model", created, owned_by: "inpage", status },
    ...(now?.context_length !== undefined && {
      context_length: now.context_length,
      max_model_len: now.context_length,
    }),
    ...(capabilities && { capabilities }),
    ...(now?.tools !== undefined && { tools: now.tools }),
    ...(model.aliases.length > 0 && { aliases: model.aliases }),
  };
}

/** The only entry of a list that one model's endpoint has answered; `undefined` for another answer. */
export async function cardIn(answer: Response): Promise<ModelCard | undefined> {
  try {
    const { data } = (await answer.json()) as { data?: ModelCard[] };
    return answer.ok ? data?.[0] : undefined;
  } catch {
    return undefined;
  }
}

/** `answer` with another JSON body. */
export function withBody(answer: Response, body: unknown): Response {
  const { status, statusText } = answer;
  const headers = new Headers(answer.headers);
  headers.delete("content-length");
  return new Response(JSON.stringify(body), { status, statusText, headers });
}

/** `answer`; if it says that there is no such model, with the names of those that there are. */
export async function namingKnown(
  answer: Response,
  models: readonly NamedModel[],
): Promise<Response> {
  if (answer.status !== 404) return answer;
  const text = await answer.text();
  const same = () => new Response(text, answer);
  let body: { error?: { code?: unknown; message?: unknown } };
  try {
    body = JSON.parse(text);
  } catch {
    return same();
  }
  const { error } = body;
  if (error?.code !== "model_not_found") return same();
  const names = models.flatMap(({ name, aliases }) => [name, ...aliases]);
  const known = names.map((name) => JSON.stringify(name)).join(", ");
  // The endpoint of a model lists that one only.
  const said = `${error.message}`.replace(/( does not exist).*$/s, "$1");
  return withBody(answer, { ...body, error: { ...error, message: `${said}; these do: ${known}` } });
}
