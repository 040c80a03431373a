//! The members of a request that a response repeats (specification 20.3).

use serde::Serialize;
use serde_json::{Map, Value};

/// Members of the response that come from the request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseEcho"))]
pub(super) struct Echo {
    pub instructions: Option<String>,
    pub max_output_tokens: Option<usize>,
    pub max_tool_calls: Option<usize>,
    #[cfg_attr(test, ts(type = "Record<string, string>"))]
    pub metadata: Map<String, Value>,
    pub parallel_tool_calls: bool,
    pub prompt_cache_key: Option<String>,
    pub reasoning: ResponseReasoning,
    pub safety_identifier: Option<String>,
    pub text: ResponseTextConfig,
    /// The choice of the request; `auto` without one.
    #[cfg_attr(test, ts(type = "ToolChoice"))]
    pub tool_choice: Value,
    #[cfg_attr(test, ts(type = "ResponseTool[]"))]
    pub tools: Vec<Value>,
    pub top_logprobs: usize,
    pub user: Option<String>,
}

/// The amount of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ResponseReasoning {
    pub effort: Option<&'static str>,
    pub summary: Option<&'static str>,
}

/// The format of the text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ResponseTextConfig {
    #[cfg_attr(test, ts(type = "ResponseTextFormat"))]
    pub format: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"low\" | \"medium\" | \"high\""))]
    pub verbosity: Option<&'static str>,
}
