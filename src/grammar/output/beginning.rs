//! Finds the place in the model's turn at which a prompt ends.

use super::form::OutputForm;

/// Strings that begin the model's turn in a prompt: reasoning that was opened before it was closed by the turn's
/// end.
const TURN_MARKS: [&str; 16] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|im_sep|>",
    "<|eot_id|>",
    "<|end_header_id|>",
    "<|eot|>",
    "<|header_end|>",
    "<|assistant|>",
    "<|user|>",
    "<｜Assistant｜>",
    "<｜User｜>",
    "[/INST]",
    "<|end_of_role|>",
    "<|end_of_text|>",
    "<|turn>",
    "<start_of_turn>",
];

/// The place in the model's turn where a prompt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Beginning {
    /// The prompt ends before reasoning, if there is any.
    Turn,
    /// The prompt ends inside reasoning.
    Reasoning {
        /// Whether the opening tag is at the end of the prompt.
        is_fresh: bool,
    },
    /// The prompt ends after reasoning.
    Reasoned,
}

/// The place in the model's turn where a prompt with this end ends.
pub(in crate::grammar) fn beginning(form: &OutputForm, prompt_tail: &str) -> Beginning {
    let turn = TURN_MARKS
        .iter()
        .filter_map(|mark| Some(prompt_tail.rfind(mark)? + mark.len()))
        .max()
        .map_or(prompt_tail, |start| &prompt_tail[start..]);
    let Some(tags) = form.reasoning else {
        return Beginning::Turn;
    };
    let opened = turn.rfind(tags.open);
    let closed = turn.rfind(tags.close);
    if opened.is_some_and(|opened| closed.is_none_or(|closed| closed < opened)) {
        Beginning::Reasoning {
            is_fresh: turn.trim_end().ends_with(tags.open),
        }
    } else if turn.trim_end().ends_with(tags.close) {
        Beginning::Reasoned
    } else {
        Beginning::Turn
    }
}

impl OutputForm {
    /// The tags around the reasoning that may follow a prompt with this end: the opening one, unless the prompt has it, and the
    /// closing one. `None` if none may follow.
    pub fn reasoning_after(
        &self,
        prompt_tail: &str,
    ) -> Option<(Option<&'static str>, &'static str)> {
        let tags = self.reasoning?;
        match beginning(self, prompt_tail) {
            Beginning::Turn => Some((Some(tags.open), tags.close)),
            Beginning::Reasoning { .. } => Some((None, tags.close)),
            Beginning::Reasoned => None,
        }
    }
}
