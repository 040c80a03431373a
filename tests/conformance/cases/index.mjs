//! All cases, in the order of their numbers.

import a from "./a_routes.mjs";
import b from "./b_validation.mjs";
import c from "./c_objects.mjs";
import d from "./d_prompts.mjs";
import e from "./e_sampling.mjs";
import f from "./f_stop.mjs";
import g from "./g_logprobs.mjs";
import h from "./h_streaming.mjs";
import i from "./i_constrained.mjs";
import j from "./j_context.mjs";
import k1 from "./k_chat_fields.mjs";
import k2 from "./k_chat_messages.mjs";
import k3 from "./k_chat_output.mjs";
import k4 from "./k_chat_delivery.mjs";
import l from "./l_embeddings.mjs";
import m from "./m_responses.mjs";
import n from "./n_images.mjs";
import o from "./o_messages.mjs";
import p from "./p_rerank.mjs";

const k = [...k1, ...k2, ...k3, ...k4];

/** The groups of docs/conformance.md. */
export const groups = {
  A: a,
  B: b,
  C: c,
  D: d,
  E: e,
  F: f,
  G: g,
  H: h,
  I: i,
  J: j,
  K: k,
  L: l,
  M: m,
  N: n,
  O: o,
  P: p,
};

export const cases = Object.values(groups).flat();
