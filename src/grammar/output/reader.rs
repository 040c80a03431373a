//! Divides a model's output into content, reasoning and calls while it is written. Longer than other files: one state machine,
//! whose states hold back the same text.

use std::collections::VecDeque;

use super::beginning::{Beginning, beginning};
use super::deepseek::{self, DeepSeekCalls};
use super::delivery::{Delivery, OutputPart, Status};
use super::form::{CallForm, OutputForm, ReasoningTags};
use super::harmony::Harmony;
use super::invocation::{self, Invocation, Invocations};
use super::json::JsonCalls;
use super::markup::{self, Markup, MarkupCall};
use super::named::NamedCall;
use crate::grammar::tool::Tool;

/// The most white space that is held until it is clear whether a tag follows.
const MAX_SPACE_BYTES: usize = 256;

/// Reads one output. The parts, joined, do not depend on how the text is divided.
#[derive(Debug)]
pub struct OutputReader(Kind);

#[derive(Debug)]
enum Kind {
    Tagged(Box<Tagged>),
    Harmony(Box<Harmony>),
}

impl OutputReader {
    /// `tools` are the ones that may be called. `prompt_tail` is the end of the prompt: it may open
    /// reasoning, or a message of gpt-oss.
    pub fn new(form: &OutputForm, tools: &[Tool], prompt_tail: &str) -> OutputReader {
        OutputReader::of_turn(form, tools, prompt_tail, false)
    }

    /// Same as [`Self::new`]. With `is_forced` the output must be a call: one that the end cuts off before its arguments is a call,
    /// too.
    pub fn of_turn(
        form: &OutputForm,
        tools: &[Tool],
        prompt_tail: &str,
        is_forced: bool,
    ) -> OutputReader {
        let delivery = Delivery::new(tools);
        OutputReader(match form.calls {
            CallForm::Harmony => Kind::Harmony(Harmony::new(delivery, prompt_tail).into()),
            _ => Kind::Tagged(Tagged::new(*form, delivery, prompt_tail, is_forced).into()),
        })
    }

    /// Reads the next piece of the output, which contains the text of special tokens. Returns the parts
    /// that are certain now.
    pub fn push(&mut self, text: &str) -> Vec<OutputPart> {
        match &mut self.0 {
            Kind::Tagged(reader) => {
                reader.queue.extend(text.chars());
                reader.run();
                reader.delivery.take()
            }
            Kind::Harmony(reader) => {
                text.chars().for_each(|character| reader.feed(character));
                reader.delivery().take()
            }
        }
    }

    /// The output is over: returns what was held. Text that is not a whole call is content.
    pub fn finish(&mut self) -> Vec<OutputPart> {
        match &mut self.0 {
            Kind::Tagged(reader) => {
                reader.finish();
                reader.delivery.take()
            }
            Kind::Harmony(reader) => {
                reader.finish();
                reader.delivery().take()
            }
        }
    }
}

/// The reader of a call's body.
#[derive(Debug)]
enum Body {
    Json(JsonCalls),
    Named(NamedCall),
    Markup(MarkupCall),
    Invocations(Invocations),
    DeepSeek(DeepSeekCalls),
}

impl Body {
    fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        match self {
            Body::Json(body) => body.feed(character, delivery),
            Body::Named(body) => body.feed(character, delivery),
            Body::Markup(body) => body.feed(character, delivery),
            Body::Invocations(body) => body.feed(character, delivery),
            Body::DeepSeek(body) => body.feed(character, delivery),
        }
    }

    /// The output ends. Whether the held text belongs to calls that were delivered.
    fn finish(&mut self, delivery: &mut Delivery) -> bool {
        match self {
            Body::Json(body) => body.finish(delivery),
            Body::Named(body) => body.finish(delivery),
            Body::Markup(body) => body.finish(delivery),
            Body::Invocations(body) => body.finish(delivery),
            Body::DeepSeek(body) => body.finish(delivery),
        }
    }
}

#[derive(Debug)]
enum Mode {
    Text,
    Reasoning(ReasoningTags),
    Call {
        body: Body,
        /// Calls that had begun before it.
        calls_before: usize,
    },
}

/// The part of an output that a tag in text begins.
#[derive(Clone, Copy)]
enum Opening {
    Reasoning(ReasoningTags),
    Json {
        closer: &'static str,
        may_lack_arguments: bool,
    },
    Named,
    Markup(&'static Markup),
    Invocations(&'static Invocation),
    DeepSeek,
}

/// Reads outputs in which tags are in text.
#[derive(Debug)]
struct Tagged {
    form: OutputForm,
    mode: Mode,
    /// Characters to be read.
    queue: VecDeque<char>,
    /// Text that may be the beginning of a tag.
    pending: String,
    /// White space that belongs to a tag if one follows.
    space: String,
    /// Whether white space belongs to the tag before it.
    trims: bool,
    /// Whether no text has come since the beginning or the last tag.
    is_start: bool,
    /// Whether the output must be a call.
    is_forced: bool,
    delivery: Delivery,
}

impl Tagged {
    fn new(form: OutputForm, delivery: Delivery, prompt_tail: &str, is_forced: bool) -> Tagged {
        let (mode, trims) = match (form.reasoning, beginning(&form, prompt_tail)) {
            (Some(tags), Beginning::Reasoning { is_fresh }) => (Mode::Reasoning(tags), is_fresh),
            (_, beginning) => (Mode::Text, beginning == Beginning::Reasoned),
        };
        Tagged {
            form,
            mode,
            queue: VecDeque::new(),
            pending: String::new(),
            space: String::new(),
            trims,
            is_start: true,
            is_forced,
            delivery,
        }
    }

    fn run(&mut self) {
        while let Some(character) = self.queue.pop_front() {
            match &mut self.mode {
                Mode::Text | Mode::Reasoning(_) => {
                    self.pending.push(character);
                    self.resolve();
                }
                Mode::Call { body, calls_before } => {
                    let fits = self.delivery.hold(character);
                    let mut status = body.feed(character, &mut self.delivery);
                    let has_begun = self.delivery.calls() > *calls_before;
                    if status == Status::More && !fits {
                        status = Status::Left;
                    }
                    match status {
                        Status::More => {
                            if has_begun {
                                self.space.clear();
                            }
                        }
                        Status::Done => {
                            self.delivery.settle();
                            self.end_call();
                        }
                        Status::Left if has_begun => {
                            self.end_call();
                            self.reread();
                        }
                        Status::Left | Status::Failed => self.fail(has_begun),
                    }
                }
            }
        }
    }

    /// Ends a block of calls.
    fn end_call(&mut self) {
        self.mode = Mode::Text;
        self.space.clear();
        self.trims = true;
        self.is_start = true;
    }

    /// Puts the held text before what is to be read.
    fn reread(&mut self) {
        for character in self.delivery.release().chars().rev() {
            self.queue.push_front(character);
        }
    }

    /// The held text is no call: its first character is content, so that the rest may hold a call.
    fn fail(&mut self, has_begun: bool) {
        if has_begun {
            self.end_call();
        }
        self.mode = Mode::Text;
        self.reread();
        while let Some(character) = self.queue.pop_front() {
            self.text(character);
            if !character.is_whitespace() {
                break;
            }
        }
    }

    /// Finds out what the pending characters are.
    fn resolve(&mut self) {
        while !self.pending.is_empty() {
            let mut may_be_tag = false;
            let mut found = None;
            self.tags(|tag, opening| {
                if tag == self.pending {
                    found = Some(opening);
                } else if tag.starts_with(&self.pending) {
                    may_be_tag = true;
                }
            });
            if let Some(opening) = found {
                return self.open(opening);
            }
            if may_be_tag {
                return;
            }
            let first = self.pending.remove(0);
            self.text(first);
        }
    }

    /// Visits the tags that may come now.
    fn tags(&self, mut visit: impl FnMut(&'static str, Option<Opening>)) {
        if let Mode::Reasoning(tags) = self.mode {
            return visit(tags.close, None);
        }
        if let Some(tags) = self.form.reasoning.filter(|_| self.is_start) {
            visit(tags.open, Some(Opening::Reasoning(tags)));
        }
        if !self.delivery.has_tools() {
            return;
        }
        let json = |closer, may_lack_arguments| {
            Some(Opening::Json {
                closer,
                may_lack_arguments,
            })
        };
        match self.form.calls {
            CallForm::Bare | CallForm::Llama3 => {
                if self.is_start {
                    visit("{", json("", false));
                }
                if self.form.calls == CallForm::Llama3 {
                    if self.is_start {
                        self.visit_invocation(&invocation::LLAMA, &mut visit);
                    }
                    visit("<|python_tag|>", json("", false));
                    visit(invocation::LLAMA4.close, json("", false));
                    self.visit_invocation(&invocation::LLAMA4, visit);
                }
            }
            CallForm::Hermes { .. } => visit("<tool_call>", json("</tool_call>", true)),
            CallForm::Mistral | CallForm::MistralNamed { .. } => {
                visit("[TOOL_CALLS]", Some(Opening::Named));
            }
            CallForm::Granite => visit("<|tool_call|>", json("", true)),
            CallForm::Phi4 => visit("<|tool_call|>", json("<|/tool_call|>", true)),
            CallForm::QwenMarkup => {
                visit(markup::QWEN.open, Some(Opening::Markup(&markup::QWEN)));
                visit(markup::QWEN.name_open, Some(Opening::Markup(&markup::QWEN)));
            }
            CallForm::Glm => visit(markup::GLM.open, Some(Opening::Markup(&markup::GLM))),
            CallForm::MiniCpm => {
                let markup = &markup::MINICPM;
                visit(markup.name_open, Some(Opening::Markup(markup)));
            }
            CallForm::Lfm2 => self.visit_invocation(&invocation::LFM2, visit),
            CallForm::Gemma4 => self.visit_invocation(&invocation::GEMMA4, visit),
            CallForm::FunctionGemma => self.visit_invocation(&invocation::FUNCTION_GEMMA, visit),
            CallForm::DeepSeek => visit(deepseek::OPENER, Some(Opening::DeepSeek)),
            CallForm::Harmony => {}
        }
    }

    fn visit_invocation(
        &self,
        form: &'static Invocation,
        mut visit: impl FnMut(&'static str, Option<Opening>),
    ) {
        visit(form.open, Some(Opening::Invocations(form)));
    }

    /// The pending tag. Without an opening, it ends reasoning.
    fn open(&mut self, opening: Option<Opening>) {
        let tag = std::mem::take(&mut self.pending);
        let body = match opening {
            None => {
                self.mode = Mode::Text;
                self.space.clear();
                self.trims = true;
                return;
            }
            Some(Opening::Reasoning(tags)) => {
                self.mode = Mode::Reasoning(tags);
                self.space.clear();
                self.trims = true;
                return;
            }
            Some(Opening::Json {
                closer,
                may_lack_arguments,
            }) => Body::Json(JsonCalls::new(closer, may_lack_arguments)),
            Some(Opening::Named) => Body::Named(NamedCall::Before),
            Some(Opening::Markup(markup)) => Body::Markup(MarkupCall::new(markup, &tag)),
            Some(Opening::Invocations(form)) => Body::Invocations(Invocations::new(form)),
            Some(Opening::DeepSeek) => Body::DeepSeek(DeepSeekCalls::new()),
        };
        self.mode = Mode::Call {
            body,
            calls_before: self.delivery.calls(),
        };
        for character in tag.chars() {
            self.delivery.hold(character);
        }
        // The brace or bracket is the body's first character.
        if let Some(first @ ('{' | '[')) = tag.chars().next().filter(|_| tag.len() == 1) {
            self.delivery.settle();
            self.queue.push_front(first);
        }
    }

    fn text(&mut self, character: char) {
        if character.is_whitespace() {
            if !self.trims {
                self.space.push(character);
            }
            if self.space.len() > MAX_SPACE_BYTES {
                self.flush_space();
            }
            return;
        }
        self.flush_space();
        self.deliver(character.encode_utf8(&mut [0; 4]));
        self.trims = false;
        self.is_start &= matches!(self.mode, Mode::Reasoning(_));
    }

    fn flush_space(&mut self) {
        let space = std::mem::take(&mut self.space);
        self.deliver(&space);
    }

    fn deliver(&mut self, text: &str) {
        match self.mode {
            Mode::Reasoning(_) => self.delivery.reasoning(text),
            _ => self.delivery.content(text),
        }
    }

    /// Delivers a call of which the output's end has left no arguments, if its name is known. False: there is none.
    fn finish_cut_call(&mut self) -> bool {
        let held = match self.mode {
            Mode::Call { calls_before, .. } if self.delivery.calls() > calls_before => {
                return false;
            }
            Mode::Reasoning(_) => return false,
            Mode::Call { .. } => self.delivery.release(),
            Mode::Text => String::new(),
        };
        let held = held + &std::mem::take(&mut self.pending);
        self.space.clear();
        if held.trim().is_empty() {
            return false;
        }
        let is_first = self.delivery.calls() == 0;
        let name = self.delivery.name_in(&held, is_first);
        self.mode = Mode::Text;
        if let Some(name) = name {
            self.delivery.start_call(&name);
        }
        true
    }

    fn finish(&mut self) {
        if self.is_forced && self.finish_cut_call() {
            return;
        }
        loop {
            if let Mode::Call { body, calls_before } = &mut self.mode {
                let has_begun = self.delivery.calls() > *calls_before;
                // Nothing after a forced call is content.
                let is_settled = (body.finish(&mut self.delivery) || self.is_forced) && has_begun;
                if is_settled {
                    self.delivery.settle();
                    self.end_call();
                } else {
                    self.fail(has_begun);
                    self.run();
                    continue;
                }
            }
            for character in std::mem::take(&mut self.pending).chars() {
                self.text(character);
            }
            self.flush_space();
            return;
        }
    }
}
