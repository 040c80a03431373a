//! Several models behind one endpoint: which one gets a request, when it is started and ended. Every answer comes from the
//! endpoint of one of them; `loads.ts` decides when a model may be loaded, `list.ts` joins the lists.
//!
//! Several models are several workers. A wasm module's memory never shrinks and a GPU device is lost as a whole, so a
//! model that is unloaded or fails ends with its worker, and the others do not notice. The page chooses the worker and
//! answers nothing itself: HTTP semantics stay in Rust. It reads only the body's `model` and replaces an alias by the
//! name, without touching another byte (`body_field.ts`). A request that is for no model goes to the endpoint of
//! any, which refuses it; if no model is loaded, to an endpoint that never loads its own (the lobby). Two answers are
//! completed in the page, because an endpoint knows only its own model: the list (`list.ts`, from the
//! entries of the endpoints) and `model_not_found`, whose message gets the known names. A service worker's exchange is
//! passed on with its positions and losses (`pass_on.ts`), so another tab can continue it. This explanation makes the file longer than others.

import { endpointRoute, mayOmitModel, routeAt } from "../exchange/base_paths.js";
import type { EngineChange } from "../exchange/engine_change.js";
import type { EngineInfo, ModelInfo } from "../exchange/engine_info.js";
import { EngineFailure, failureResponse } from "../exchange/error_response.js";
import type { HeaderList, Resume, WireFailure, WireRequest } from "../exchange/protocol.js";
import { type Answer, servePort } from "../exchange/serve_port.js";
import type { Capability, EngineSwitches, Health, ModelCard } from "../generated/types.js";
import type { EngineCore } from "./engine_core.js";
import type { EngineOptions } from "../options/engine_options.js";
import type { Answering } from "../api/fetch_door.js";
import { PLACEHOLDER_SITE } from "../api/fetch_scope.js";
import { InpageError } from "../api/inpage_error.js";
import { Loads } from "./loads.js";
import type { LoraAdapter } from "../options/lora.js";
import { modelFieldOf, withModel } from "./body_field.js";
import { StartedModel } from "./started.js";
import {
  type KnownModel,
  type ListedModel,
  capabilitiesOf,
  cardIn,
  listed,
  namingKnown,
  withBody,
} from "./list.js";
import { DEFAULT_NAME, isNameOf, resolveModels } from "../options/several_models.js";
import { passOn } from "./pass_on.js";
import { answerOf } from "../api/relay.js";
import { SingleModel } from "./single.js";

/** One of the models, started or not. */
interface Slot extends KnownModel {
  started: StartedModel | undefined;
}

/** The endpoint that answers a request: that of a model, or any if the request is for no model. */
type Addressee = { slot: Slot; request: WireRequest } | "any";

export class ModelGroup implements EngineCore {
  readonly ready = Promise.resolve();
  readonly #options: EngineOptions;
  readonly #endpoint: EngineSwitches;
  readonly #onChange: (change: EngineChange) => void;
  readonly #basePaths: readonly string[];
  readonly #slots: Slot[];
  readonly #loads: Loads;
  readonly #createdS = Math.floor(Date.now() / 1000);
  /** An endpoint that never loads its model, for requests that are for none, while no model is loaded. */
  #lobby: StartedModel | undefined;
  /** Lobbies that end when their answers were read. */
  readonly #closedLobbies = new Set<StartedModel>();
  #isPaused = false;
  #isDisposed = false;

  /** @throws TypeError for an option that cannot be used */
  constructor(
    options: EngineOptions,
    basePaths: readonly string[],
    onChange: (change: EngineChange) => void,
  ) {
    this.#options = options;
    this.#endpoint = options.endpoint ?? {};
    this.#onChange = onChange;
    this.#basePaths = basePaths;
    this.#slots = resolveModels(this.#options).map((named) => ({
      ...named,
      card: undefined,
      started: undefined,
    }));
    this.#loads = new Loads(options.memoryBudgetBytes);
  }

  /** There is no load to end before a request. */
  fail(): void {}

  async info(): Promise<EngineInfo> {
    const infos = this.#slots.flatMap(({ name, started }) =>
      started === undefined
        ? []
        : [
            started.engine.info().then((info): [string, ModelInfo] => {
              const memoryBytes = this.#loads.bytesOf(started);
              return [name, { ...info, ...(memoryBytes !== undefined && { memoryBytes }) }];
            }),
          ],
    );
    return { models: Object.fromEntries(await Promise.all(infos)) };
  }

  pauseDownload(isPaused: boolean): void {
    this.#isPaused = isPaused;
    for (const { engine } of this.#started()) engine.pauseDownload(isPaused);
  }

  async setLora(lora: readonly LoraAdapter[], model?: string): Promise<void> {
    if (model === undefined) throw new TypeError("setLora: say which of the models");
    const slot = this.#named(model);
    const started = this.#use(slot);
    try {
      await started.engine.setLora(lora);
      // A later load begins with them.
      slot.options = { ...slot.options, lora };
    } finally {
      started.release();
    }
  }

  async reload(): Promise<void> {
    this.#refuseDisposed();
    await Promise.all(this.#slots.map(({ started }) => started?.engine.reload()));
  }

  async load(model: string): Promise<void> {
    const started = this.#use(this.#named(model));
    try {
      // The failure of an earlier load is no answer.
      if (started.hasFailed) await started.engine.reload();
      else await started.engine.ready;
      started.hasFailed = false;
    } finally {
      started.release();
    }
  }

  async unload(model: string): Promise<void> {
    await this.#named(model).started?.unload();
  }

  async dispose(): Promise<void> {
    this.#isDisposed = true;
    const started = [...this.#started(), ...this.#closedLobbies];
    for (const slot of this.#slots) slot.started = undefined;
    this.#lobby = undefined;
    await Promise.all(started.map((it) => it.dispose()));
  }

  readonly answer: Answering = async (request, signal) => {
    if (this.#isDisposed) return disposedAnswer(request.url);
    const addressee = await this.#addresseeOf(request, signal);
    if (addressee instanceof Response) return addressee;
    if (addressee === "any") return this.#answerAny(request, signal);
    if (this.#isDisposed) return disposedAnswer(request.url);
    const started = this.#use(addressee.slot);
    return started.answer(addressee.request, signal);
  };

  connect(port: MessagePort): undefined {
    void servePort(port, (request, cancelled, resume) => this.#passOn(request, cancelled, resume));
  }

  /** Answers a requester that may go to another tab when this one is lost. */
  async #passOn(
    request: WireRequest,
    cancelled: AbortSignal,
    resume: Resume | undefined,
  ): Promise<Answer | { lost: WireFailure }> {
    if (resume === undefined || this.#isDisposed) {
      return answerOf(await this.answer(request, cancelled));
    }
    const addressee = await this.#addresseeOf(request, cancelled);
    if (addressee instanceof Response) return answerOf(addressee);
    if (addressee === "any") return answerOf(await this.#answerAny(request, cancelled));
    if (this.#isDisposed) return answerOf(disposedAnswer(request.url));
    const started = this.#use(addressee.slot);
    try {
      const connection = await started.engine.openPort(false);
      const answer = await passOn(connection, addressee.request, cancelled, resume);
      if ("lost" in answer) started.release();
      else void answer.ended.then(() => started.release());
      return answer;
    } catch (error) {
      started.release();
      throw error;
    }
  }

  /** The model that a request is for, or the answer to a request that may not load one. */
  async #addresseeOf(
    request: WireRequest,
    signal: AbortSignal | undefined,
  ): Promise<Addressee | Response> {
    const route = endpointRoute(new URL(request.url), this.#basePaths);
    if (!route?.capability || request.method !== route.method) return "any";
    const { isObject, model } = modelFieldOf(request.body);
    const { allowMissingModel, profile, apiKey } = this.#endpoint;
    const name = model ?? (mayOmitModel(allowMissingModel, profile) ? DEFAULT_NAME : undefined);
    // The abilities of the loaded models decide which of them `default` means.
    if (name === DEFAULT_NAME) await this.#describeLoaded();
    const slot = isObject && name !== undefined ? this.#slotFor(name, route.capability) : undefined;
    if (slot === undefined) return "any";
    if (apiKey && slot.started === undefined) {
      // A request without the key must not make the page load a model.
      const allowed = await this.#answerAny(this.#listRequest(request.headers), signal);
      if (!allowed.ok) return allowed;
      await allowed.body?.cancel();
    }
    const isAlias = name !== slot.name && name !== DEFAULT_NAME;
    const body = isAlias ? withModel(request.body, slot.name) : request.body;
    return { slot, request: { ...request, body } };
  }

  async #describeLoaded(): Promise<void> {
    const loaded = this.#slots.flatMap(({ started }) => (started?.isLoaded ? [started] : []));
    await Promise.all(loaded.map(({ described }) => described));
  }

  /** The model that `name` means where a model has to be able to do `needed`. */
  #slotFor(name: string, needed: Capability | undefined): Slot | undefined {
    if (name !== DEFAULT_NAME) return this.#slots.find((slot) => isNameOf(slot, name));
    const fits = (slot: Slot) => needed === undefined || capabilitiesOf(slot)?.includes(needed);
    const mayFit = (slot: Slot) => capabilitiesOf(slot) === undefined || fits(slot);
    const { defaultModel } = this.#endpoint;
    const chosen = this.#slots.find((slot) => defaultModel && isNameOf(slot, defaultModel));
    if (chosen && mayFit(chosen)) return chosen;
    return this.#slots.find(fits) ?? this.#slots.find(mayFit) ?? this.#slots[0];
  }

  /** Answers a request that no model has to be loaded for. */
  async #answerAny(request: WireRequest, signal: AbortSignal | undefined): Promise<Response> {
    const route = routeAt(new URL(request.url), this.#basePaths);
    if (request.method === "GET" && route === "health") {
      const answer = await this.#anyEndpoint(request, signal);
      // The lobby has no model, but requests do not depend on it: they load theirs.
      return answer.status === 503 && !this.#isDisposed ? healthy(answer) : answer;
    }
    if (request.method !== "GET" || route === undefined || !isOfModels(route)) {
      return namingKnown(await this.#anyEndpoint(request, signal), this.#slots);
    }
    const name = route === "models" ? undefined : decoded(route.slice("models/".length));
    const slot = name === undefined ? undefined : this.#slotFor(name, undefined);
    if (name !== undefined && slot === undefined) {
      return namingKnown(await this.#anyEndpoint(request, signal), this.#slots);
    }
    // The endpoint checks the request; its own list is replaced.
    const answer = await this.#anyEndpoint(this.#listRequest(request.headers), signal);
    if (!answer.ok) return answer;
    await answer.body?.cancel();
    if (slot) return withBody(answer, await this.#entryOf(slot));
    const data = await Promise.all(this.#slots.map((it) => this.#entryOf(it)));
    return withBody(answer, { object: "list", data });
  }

  /** Has any endpoint answer: one whose model is loaded, or the lobby's. */
  async #anyEndpoint(request: WireRequest, signal: AbortSignal | undefined): Promise<Response> {
    if (this.#isDisposed) return disposedAnswer(request.url);
    const loaded = this.#slots.find(({ started }) => started?.isLoaded)?.started;
    const endpoint = loaded ?? this.#openLobby();
    endpoint.use(false);
    return endpoint.answer(request, signal);
  }

  #openLobby(): StartedModel {
    const [first] = this.#slots as [Slot];
    const options: EngineOptions = {
      ...first.options,
      // It computes nothing, and no request may wait for its model.
      ...{ device: "webgpu", threads: 1, lora: [], isolatedFrame: false, shared: false },
      endpoint: { ...first.options.endpoint, whenModelNotReady: "error" },
    };
    const never = () => new Promise<void>(() => {});
    const admission = { mayOpen: never, mayRead: never, onOpenExchanges: () => {} };
    this.#lobby ??= new StartedModel(new SingleModel(options, () => {}, { admission }), () => {});
    return this.#lobby;
  }

  #closeLobby(): void {
    const lobby = this.#lobby;
    if (lobby === undefined) return;
    this.#lobby = undefined;
    this.#closedLobbies.add(lobby);
    void lobby.unload().finally(() => this.#closedLobbies.delete(lobby));
  }

  /** The list of one endpoint, with the headers of `request`. */
  #listRequest(headers: HeaderList): WireRequest {
    const [base = "/v1"] = this.#basePaths;
    const url = new URL(`${base.replace(/\/+$/, "")}/models`, PLACEHOLDER_SITE).href;
    return { method: "GET", url, headers: withoutBody(headers), body: new Uint8Array() };
  }

  /** The answer of a started model's endpoint about it. */
  async #cardOf(started: StartedModel): Promise<ModelCard | undefined> {
    const { apiKey } = this.#endpoint;
    const request = this.#listRequest(apiKey ? [["authorization", `Bearer ${apiKey}`]] : []);
    started.use(false);
    return cardIn(await started.answer(request, undefined));
  }

  async #entryOf(slot: Slot): Promise<ListedModel> {
    const { started } = slot;
    if (started === undefined) return listed(slot, "unloaded", this.#createdS, undefined);
    const card = await this.#cardOf(started);
    if (card?.status === "ready") slot.card = card;
    return listed(slot, card?.status ?? "failed", this.#createdS, card);
  }

  /**
   * Starts a model if necessary. Until `release` is called on it, it stays loaded.
   *
   * @throws InpageError if the engine was disposed
   */
  #use(slot: Slot): StartedModel {
    this.#refuseDisposed();
    const started = slot.started ?? this.#start(slot);
    started.use(true);
    return started;
  }

  #start(slot: Slot): StartedModel {
    const admission = this.#loads.admissionOf(
      () => started,
      (isLoaded) => {
        started.isLoaded = isLoaded;
        started.hasFailed = !isLoaded;
        if (isLoaded) this.#closeLobby();
      },
    );
    const model = slot.name;
    const onChange = (change: EngineChange) =>
      this.#onChange(
        change.type === "progress"
          ? { ...change, progress: { ...change.progress, model } }
          : { ...change, model },
      );
    const engine = new SingleModel(slot.options, onChange, { admission });
    const started: StartedModel = new StartedModel(engine, () => {
      if (started.isGone && slot.started === started) slot.started = undefined;
      if (!started.isFree) return this.#loads.changed();
      this.#loads.leave(started);
      // Its next load may have begun.
      if (slot.started === undefined) onChange({ type: "statechange", state: "unloaded" });
    });
    slot.started = started;
    if (this.#isPaused) engine.pauseDownload(true);
    started.described = engine.ready.then(
      () => this.#entryOf(slot).catch(() => {}),
      () => {
        started.hasFailed = true;
      },
    );
    return started;
  }

  #named(name: string): Slot {
    const slot = this.#slots.find((it) => isNameOf(it, name));
    if (slot) return slot;
    const known = this.#slots.map((it) => JSON.stringify(it.name)).join(", ");
    const message = `there is no model ${JSON.stringify(name)}; these are: ${known}`;
    throw InpageError.local("model_not_found", message);
  }

  #started(): StartedModel[] {
    const all = [...this.#slots.map(({ started }) => started), this.#lobby];
    return all.filter((it) => it !== undefined);
  }

  #refuseDisposed(): void {
    if (this.#isDisposed) {
      throw InpageError.local("engine_unavailable", "the engine was disposed");
    }
  }
}

const isOfModels = (route: string) => route === "models" || route.startsWith("models/");

/** The answer of an endpoint that is ready, with the headers of one that is not. */
function healthy(unready: Response): Response {
  // An unread answer stays in flight, and keeps its endpoint from ending.
  void unready.body?.cancel();
  const headers = new Headers(unready.headers);
  for (const name of ["content-length", "retry-after", "x-should-retry"]) headers.delete(name);
  return new Response(JSON.stringify({ status: "ok" } satisfies Health), { headers });
}

function disposedAnswer(url: string): Response {
  const failure = new EngineFailure("engine_unavailable", "the engine was disposed");
  return failureResponse(failure, url);
}

/** The headers of a request without those that describe its body. */
function withoutBody(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => !name.toLowerCase().startsWith("content-"));
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
