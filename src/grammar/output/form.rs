//! The family that a model belongs to, judging by its chat template and its special tokens.

use crate::text::Tokenizer;

/// The form in which a model family writes reasoning and tool calls. The default is a family of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputForm {
    pub(in crate::grammar) reasoning: Option<ReasoningTags>,
    pub(in crate::grammar) calls: CallForm,
}

/// The tags around reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) struct ReasoningTags {
    pub open: &'static str,
    pub close: &'static str,
}

/// The form in which a family writes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::grammar) enum CallForm {
    /// `{"name": ..., "arguments": {...}}` alone: for families whose form is unknown.
    #[default]
    Bare,
    /// `{"name": ..., "parameters": {...}}` alone or after a tag, or `[f(a="x", b=1)]`, as Llama 3 and 4 write it.
    Llama3,
    /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as Hermes and Qwen write it.
    Hermes {
        /// Whether the tags are special tokens, which may be left out of the text.
        has_special_tags: bool,
    },
    /// `[TOOL_CALLS] [{"name": ..., "arguments": {...}}]`, as Mistral models up to Nemo write it.
    Mistral,
    /// `[TOOL_CALLS]name[ARGS]{...}`, as later Mistral models write it.
    MistralNamed {
        /// Whether `[CALL_ID]` and an id follow the name.
        has_ids: bool,
    },
    /// `<|tool_call|>[{"name": ..., "arguments": {...}}]`, as Granite 3 writes it.
    Granite,
    /// The same with `<|/tool_call|>` after it, as Phi-4 mini writes it.
    Phi4,
    /// The form of Qwen3-Coder and Qwen3.5.
    QwenMarkup,
    /// The form of GLM 4.5 and later.
    Glm,
    /// The form of MiniCPM5.
    MiniCpm,
    /// The form of LFM2.
    Lfm2,
    /// The form of Gemma 4.
    Gemma4,
    /// The form of FunctionGemma.
    FunctionGemma,
    /// The form of DeepSeek's models.
    DeepSeek,
    /// Messages with channels, as gpt-oss writes them.
    Harmony,
}

impl CallForm {
    /// The form in a completion, whose text lacks special tokens. Forms that cannot be read without them
    /// are replaced.
    pub(in crate::grammar) fn in_completions(self) -> CallForm {
        match self {
            CallForm::Gemma4 | CallForm::FunctionGemma | CallForm::DeepSeek | CallForm::Harmony => {
                CallForm::Bare
            }
            form => form,
        }
    }
}

const THINK: ReasoningTags = ReasoningTags {
    open: "<think>",
    close: "</think>",
};
const BRACKETS: ReasoningTags = ReasoningTags {
    open: "[THINK]",
    close: "[/THINK]",
};
const THOUGHT: ReasoningTags = ReasoningTags {
    open: "<|channel>thought",
    close: "<channel|>",
};

impl OutputForm {
    /// The form in which the model of this tokenizer writes.
    pub fn of(tokenizer: &Tokenizer) -> OutputForm {
        // A template for tools names what the other one names, and the tags of calls.
        let template = tokenizer.chat_templates().choose(true);
        OutputForm::with_template(template.unwrap_or_default(), tokenizer)
    }

    /// The form in which the model of this tokenizer writes with another chat template.
    pub fn with_template(template: &str, tokenizer: &Tokenizer) -> OutputForm {
        OutputForm::judged(
            template,
            &|text| tokenizer.named_id(text).is_some(),
            &|text| tokenizer.special_id(text).is_some(),
        )
    }

    /// The form in which the model writes if its template renders no tools, and the prompt asks for calls in `<tool_call>`.
    pub fn with_generic_calls(self) -> OutputForm {
        let calls = match self.calls {
            CallForm::Hermes { .. } => self.calls,
            _ => CallForm::Hermes {
                has_special_tags: false,
            },
        };
        OutputForm { calls, ..self }
    }

    /// The form in which the model with this chat template writes. `is_named` says whether a text is a token with a
    /// role of its own, `is_special` whether such a token is hidden.
    pub(in crate::grammar) fn judged(
        template: &str,
        is_named: &dyn Fn(&str) -> bool,
        is_special: &dyn Fn(&str) -> bool,
    ) -> OutputForm {
        OutputForm {
            reasoning: reasoning(template, is_named),
            calls: calls(template, is_named, is_special),
        }
    }
}

fn reasoning(template: &str, is_named: &dyn Fn(&str) -> bool) -> Option<ReasoningTags> {
    let has = |text| template.contains(text);
    if has("<|channel>") && has("<channel|>") {
        Some(THOUGHT)
    } else if has("[THINK]") || is_named("[THINK]") {
        Some(BRACKETS)
    } else if has("<think>") || has("</think>") || is_named("<think>") {
        Some(THINK)
    } else {
        None
    }
}

fn calls(
    template: &str,
    is_named: &dyn Fn(&str) -> bool,
    is_special: &dyn Fn(&str) -> bool,
) -> CallForm {
    let has = |text| template.contains(text);
    if has("<|channel|>") && has("<|message|>") {
        return CallForm::Harmony;
    }
    if has("<|tool_call>call:") || has("<|tool_call>") && is_named("<tool_call|>") {
        return CallForm::Gemma4;
    }
    if has("<start_function_call>") || is_named("<start_function_call>") {
        return CallForm::FunctionGemma;
    }
    if has("<tool_call>") && has("<function=") {
        return CallForm::QwenMarkup;
    }
    if has("<tool_call>") && has("<arg_key>") {
        return CallForm::Glm;
    }
    if has("<function name=") && has("<param name=") {
        return CallForm::MiniCpm;
    }
    let hermes = CallForm::Hermes {
        has_special_tags: is_special("<tool_call>"),
    };
    if has("<tool_call>") && has("arguments") {
        return hermes;
    }
    if is_special("[TOOL_CALLS]") && has("[TOOL_CALLS]") {
        return match has("[ARGS]") {
            true => CallForm::MistralNamed {
                has_ids: has("[CALL_ID]"),
            },
            false => CallForm::Mistral,
        };
    }
    let is_llama = is_special("<|python_tag|>") || is_special("<|python_start|>");
    if is_llama && has("parameters") {
        return CallForm::Llama3;
    }
    if has("<|tool_call_start|>") || is_named("<|tool_call_start|>") {
        return CallForm::Lfm2;
    }
    if is_named("<|tool_call|>") && is_named("<|/tool_call|>") {
        return CallForm::Phi4;
    }
    if has("<|tool_call|>") {
        return CallForm::Granite;
    }
    if has(super::deepseek::OPENER) {
        return CallForm::DeepSeek;
    }
    // Templates without tools, of models that were trained with them.
    match is_named("<tool_call>") {
        true => hermes,
        false => CallForm::Bare,
    }
}
