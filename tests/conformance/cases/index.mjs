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

export const cases = [...a, ...b, ...c, ...d, ...e, ...f, ...g, ...h, ...i, ...j];
