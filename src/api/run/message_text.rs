//! A candidate's text as a message of the assistant: reasoning, content and calls (specification 18.5). It follows the
//! text token by token, so that it does not depend on how the text is divided into pieces.

use crate::grammar::{OutputForm, OutputPart, OutputReader, Tool};

/// The options for reading the messages of a request.
#[derive(Debug)]
pub(super) struct MessageOptions {
    pub form: OutputForm,
    /// The tools that may be called.
    pub tools: Vec<Tool>,
    pub parallel_calls: bool,
    /// Whether the message must have a call.
    pub is_forced: bool,
    /// Whether the text is content as it is: a grammar determines all of it.
    pub is_content: bool,
}

/// The kind of a part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Reasoning,
    Message,
}

/// The reader of one candidate.
#[derive(Debug)]
pub(super) struct MessageText {
    /// `None`: everything is content.
    reader: Option<OutputReader>,
    parallel_calls: bool,
    has_calls: bool,
    /// The section of the last part.
    section: Section,
    /// Tokens since then, whose text is held back or was dropped.
    undecided_tokens: usize,
    reasoning_tokens: usize,
}

impl MessageText {
    /// `prompt_tail` is the end of the prompt.
    pub(super) fn new(options: &MessageOptions, prompt_tail: &str) -> MessageText {
        let reader = || {
            let MessageOptions {
                form,
                tools,
                is_forced,
                ..
            } = options;
            OutputReader::of_turn(form, tools, prompt_tail, *is_forced)
        };
        MessageText {
            reader: (!options.is_content).then(reader),
            parallel_calls: options.parallel_calls,
            has_calls: false,
            section: Section::Message,
            undecided_tokens: 0,
            reasoning_tokens: 0,
        }
    }

    /// Counts a token, before its text is pushed.
    pub(super) fn count_token(&mut self) {
        self.undecided_tokens += 1;
    }

    /// Reads more of the text and appends the parts that are certain.
    pub(super) fn push(&mut self, text: &str, parts: &mut Vec<OutputPart>) {
        let read = match &mut self.reader {
            Some(reader) => reader.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![OutputPart::Content(text.to_owned())],
        };
        self.take(read, parts);
    }

    /// Appends what was held back. Nothing follows.
    pub(super) fn finish(&mut self, parts: &mut Vec<OutputPart>) {
        if let Some(mut reader) = self.reader.take() {
            self.take(reader.finish(), parts);
        }
        self.decide();
    }

    fn take(&mut self, read: Vec<OutputPart>, parts: &mut Vec<OutputPart>) {
        for part in read {
            let call = match &part {
                OutputPart::CallStart { index, .. } | OutputPart::CallArguments { index, .. } => {
                    Some(*index)
                }
                OutputPart::Content(_) | OutputPart::Reasoning(_) => None,
            };
            self.section = match part {
                OutputPart::Reasoning(_) => Section::Reasoning,
                _ => Section::Message,
            };
            self.decide();
            self.has_calls |= call.is_some();
            let is_dropped = !self.parallel_calls && call.is_some_and(|index| index > 0);
            if !is_dropped {
                parts.push(part);
            }
        }
    }

    /// The undecided tokens belong to the section of the last part.
    fn decide(&mut self) {
        let tokens = std::mem::take(&mut self.undecided_tokens);
        if self.section == Section::Reasoning {
            self.reasoning_tokens += tokens;
        }
    }

    /// The tokens up to the last reasoning.
    pub(super) fn reasoning_tokens(&self) -> usize {
        self.reasoning_tokens
    }

    /// Whether a call has begun.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }
}
