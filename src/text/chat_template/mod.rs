//! Chat templates: from the messages of a conversation to the prompt that the model was trained with, byte for byte as
//! Hugging Face's `transformers` renders it. What becomes of the text is not decided here.
//!
//! | file | part |
//! |---|---|
//! | `mod` | [`render`] and its limits |
//! | `environment`, `methods` | the functions, filters, tests and methods that templates expect |
//! | `generic` | tools for templates that render none |
//! | `marker` | keeps special tokens in a message's text from being recognized |
//! | `rewrite` | statements of Jinja2 that the library lacks |
//! | `operators` | `~` and `*` as functions |
//! | `budget` | pays for what a rendering makes |
//! | `sources` | the templates of one model by name |
//! | `to_json`, `python`, `values` | values as Python writes them |
//! | `strftime` | dates |
//!
//! Jinja is a library, its limits are ours. minijinja has Python's methods and rendering, fuel, and a bound on
//! recursion. `rewrite.rs` changes a template before it is parsed: loops refuse `none` as Jinja2's do; assigned values
//! pass a check, because the library concatenates lists lazily and without fuel; and nesting is bounded, because parser
//! and code generator are recursive and a page's wasm stack has 1 MB. `hf-chat-template` was not used: it has no fuel.

mod budget;
mod environment;
mod generic;
mod marker;
mod methods;
mod operators;
mod python;
mod rewrite;
mod sources;
mod strftime;
#[cfg(test)]
mod tests;
mod to_json;
mod values;

use std::io;
use std::time::Duration;

use minijinja::{Error as JinjaError, ErrorKind, Value};
use serde_json::{Map, Value as Json};

pub use generic::{renders_tools, write_tools};
pub use marker::Marker;
pub use sources::ChatTemplates;
pub use strftime::LocalTime;
pub use values::alias_reasoning;

/// The input of a template.
#[derive(Debug, Clone, Copy)]
pub struct TemplateInput<'a> {
    /// The conversation, each message an object.
    pub messages: &'a [Json],
    /// The declared tools as OpenAI has them.
    pub tools: Option<&'a [Json]>,
    /// End with the beginning of the assistant's next message.
    pub add_generation_prompt: bool,
    /// The text of the start-of-text token.
    pub bos_token: &'a str,
    /// The text of the end-of-text token.
    pub eos_token: &'a str,
    /// Further variables. They replace those above.
    pub variables: &'a Map<String, Json>,
    /// The time that `strftime_now` sees.
    pub now: LocalTime,
    /// A character that `tojson` never escapes.
    pub marker: Marker,
}

/// The reason why a conversation was not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The template itself refuses the conversation (`raise_exception`).
    #[error("{0}")]
    Refused(String),
    /// The template does not suit the conversation: it asks a value for what it does not have.
    #[error("{0}")]
    Failed(String),
    /// The text is not a template.
    #[error("{0}")]
    Syntax(String),
    /// The template computes too long, writes too much or nests too deep.
    #[error("{0}")]
    TooMuch(String),
}

/// Steps that a template may take, each an instruction or 64 bytes of text: about a second in a page.
const BASE_FUEL: u64 = 1_000_000;
/// More steps per message. Some templates look through all messages for each of them.
const FUEL_PER_MESSAGE: u64 = 20_000;
/// The bound for any number of messages. It bounds the memory, too: 512 MB of text, and twice that while a text grows.
const MAX_FUEL: u64 = 8_000_000;
/// The time after which a rendering ends, whatever its steps.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Bytes that a template may write besides a multiple of its input.
const BASE_OUTPUT_BYTES: usize = 4 << 20;
const OUTPUT_BYTES_PER_INPUT_BYTE: usize = 8;

/// Renders `template`. The time, the length of the text and the depth of the stack are bounded, whatever the template
/// says.
///
/// # Errors
/// [`TemplateError`] says which bound or rule was violated.
pub fn render(template: &str, input: &TemplateInput<'_>) -> Result<String, TemplateError> {
    let messages = input.messages.len() as u64;
    let fuel = BASE_FUEL
        .saturating_add(messages.saturating_mul(FUEL_PER_MESSAGE))
        .min(MAX_FUEL);
    let context = context(input);
    let input_bytes = values::text_bytes(input.messages)
        + values::text_bytes(input.tools.unwrap_or_default())
        + template.len();
    let source =
        rewrite::rewrite(template).map_err(|reason| TemplateError::TooMuch(reason.to_owned()))?;
    let environment = environment::new(input.now, input.marker, fuel, TIME_LIMIT);
    let template = environment
        .template_from_str(&source)
        .map_err(|error| TemplateError::Syntax(describe(&error)))?;
    let mut output = BoundedOutput {
        text: Vec::new(),
        max_bytes: BASE_OUTPUT_BYTES + OUTPUT_BYTES_PER_INPUT_BYTE * input_bytes,
        is_exceeded: false,
    };
    let rendered = template
        .render_captured_to(context, &mut output)
        .map(drop)
        .map_err(|error| failure(&error, output.is_exceeded));
    rendered?;
    String::from_utf8(output.text).map_err(|error| TemplateError::Failed(error.to_string()))
}

/// The variables of the template.
fn context(input: &TemplateInput<'_>) -> Value {
    let given = [
        ("messages", values::list(input.messages)),
        ("tools", input.tools.map_or(Value::from(()), values::list)),
        ("documents", Value::from(())),
        (
            "add_generation_prompt",
            Value::from(input.add_generation_prompt),
        ),
        ("bos_token", Value::from(input.bos_token)),
        ("eos_token", Value::from(input.eos_token)),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), value));
    let variables = input.variables.iter();
    let variables = variables.map(|(name, value)| (name.clone(), values::value(value)));
    Value::from_pairs(given.into_iter().chain(variables))
}

/// Text of a bounded length.
struct BoundedOutput {
    text: Vec<u8>,
    max_bytes: usize,
    is_exceeded: bool,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > self.max_bytes {
            self.is_exceeded = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failure(error: &JinjaError, is_too_long: bool) -> TemplateError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(environment::Raised(message)) = cause.downcast_ref() {
            return TemplateError::Refused(message.clone());
        }
        let kind = cause.downcast_ref::<JinjaError>().map(JinjaError::kind);
        if kind == Some(ErrorKind::OutOfFuel) {
            return TemplateError::TooMuch("it computes too long".to_owned());
        }
        source = cause.source();
    }
    match is_too_long {
        true => TemplateError::TooMuch("it writes too much text".to_owned()),
        false => TemplateError::Failed(describe(error)),
    }
}

/// The error with its line, shortened: it may quote a message.
fn describe(error: &JinjaError) -> String {
    const MAX_CHARS: usize = 200;
    let text: String = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let text: String = text.chars().take(MAX_CHARS).collect();
    match error.line() {
        Some(line) => format!("{text} (line {line})"),
        None => text,
    }
}
