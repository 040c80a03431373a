//! `inpage/langchain` in browsers.

import { getEngine } from "../index.js";
import { CompletionModel } from "./completion_model.js";

export type { Fields, InpageCallOptions, InpageParams } from "./completion_model.js";

/** A model of LangChain: `new Inpage({ engine, fields })`. */
export class Inpage extends CompletionModel {
  protected engineFor = getEngine;
}
