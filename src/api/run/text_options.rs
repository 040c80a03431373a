//! The options that all candidates of a request have in common.

use std::rc::Rc;

use super::constraint::CallReader;
use super::logprobs::Listing;
use super::message_text::MessageOptions;
use super::prompt_listing::PromptLister;
use super::stop_ids::StopIds;
use crate::api::fields::{Constraint, Length};
use crate::api::models::ReadyModel;
use crate::api::plan::{Plan, Suffix};
use crate::api::switches::{Switches, TextOffsetBase};
use crate::text::Tokenizer;

/// The options that the candidates of a request have in common.
#[derive(Debug)]
pub(super) struct TextOptions {
    pub tokenizer: Rc<Tokenizer>,
    pub length: Length,
    pub stop_ids: StopIds,
    /// Whether the prompt comes before the text.
    pub echo: bool,
    /// Text after the completion.
    pub suffix: String,
    /// The options for listing tokens, if log-probabilities are requested.
    pub listing: Option<Listing>,
    /// Whether the ids of generated tokens are reported.
    pub wants_ids: bool,
    /// Whether the raw prompt and the raw completion are reported.
    pub wants_raw: bool,
    /// The lister of the prompt, apart from an echo.
    pub prompt_listing: Option<PromptLister>,
    /// Whether offsets count from the start of the prompt even if it is not echoed.
    pub offsets_count_prompt: bool,
    pub calls: Option<CallReader>,
    /// The options for reading a message; `None` if the text is not one.
    pub message: Option<MessageOptions>,
    /// The ids that the completion is expected to have, if the request says so.
    pub prediction: Option<Rc<[u32]>>,
    /// Whether the part that an earlier run delivered is returned once more.
    pub repeats_delivered: bool,
}

impl TextOptions {
    /// The options of a plan. `prediction` has the token ids of its prediction.
    pub(super) fn new(
        plan: &Plan,
        model: &ReadyModel,
        switches: &Switches,
        prediction: Option<Rc<[u32]>>,
    ) -> TextOptions {
        let is_constrained = plan.constraint.covers_everything();
        let is_message = plan.message.is_some();
        // The reader of a message needs the special tokens around calls, and removes them.
        let is_read = is_message && matches!(plan.constraint, Constraint::Tools(_));
        // No special token's text enters any other constrained completion.
        let length = Length {
            skip_special_tokens: plan.length.skip_special_tokens || (is_constrained && !is_read),
            ..plan.length.clone()
        };
        TextOptions {
            tokenizer: model.tokenizer.clone(),
            stop_ids: StopIds::new(&model.tokenizer, &length, is_constrained, is_message),
            length,
            echo: plan.echo,
            suffix: match &plan.suffix {
                Suffix::Append(suffix) => suffix.clone(),
                Suffix::None | Suffix::FillInMiddle(_) => String::new(),
            },
            listing: plan
                .logprobs
                .top
                .map(|top| Listing::new(&model.tokenizer, plan.logprobs.tokens_as_ids, top)),
            wants_ids: plan.logprobs.tokens_as_ids || plan.logprobs.token_ids,
            wants_raw: plan.raw_output,
            prompt_listing: (plan.logprobs.token_ids || plan.logprobs.prompt.is_some()).then(
                || PromptLister {
                    tokenizer: model.tokenizer.clone(),
                    wants_ids: plan.logprobs.token_ids,
                    top: plan.logprobs.prompt,
                },
            ),
            offsets_count_prompt: switches.text_offset_base == TextOffsetBase::Prompt,
            calls: CallReader::new(&plan.constraint, model.output_form),
            message: plan.message.map(|message| MessageOptions {
                form: model.chat_form(),
                tools: match &plan.constraint {
                    Constraint::Tools(calls) => calls.tools.clone(),
                    Constraint::None | Constraint::Grammar { .. } => Vec::new(),
                },
                parallel_calls: message.allows_parallel_calls(model),
                is_forced: matches!(&plan.constraint, Constraint::Tools(calls) if calls.is_forced),
                is_content: matches!(plan.constraint, Constraint::Grammar { .. }),
            }),
            prediction,
            repeats_delivered: plan.repeats_delivered,
        }
    }
}
