//! `inpage/langchain` outside of a browser.

import { CompletionModel } from "../langchain/completion_model.js";
import { getEngine } from "./index.js";

export type * from "../langchain/completion_model.js";

/** A model of LangChain: `new Inpage({ engine, fields })`. */
export class Inpage extends CompletionModel {
  protected engineFor = getEngine;
}
