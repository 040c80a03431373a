//! The bounds of a rendering. Everything that grows or takes long is paid for in fuel before it happens: the library
//! charges its own operators, and what it does not charge goes through here.
//!
//! The table has the most that each part of the language makes of values of n bytes or elements, and who charges for it before
//! it is made
//! ("library" is minijinja with fuel, "here" is this folder):
//!
//! | part | result, time | charged by |
//! |---|---|---|
//! | text of the template, `{{ }}` of a string, captured blocks | n | library |
//! | `{{ }}`, `string`, `safe` and `~` of other values | the text as Python writes it; lists may share elements | here ([`PaidText`]) |
//! | `*` with a string or a list | n times a number | here (`environment`, through `operators`) |
//! | `+` of strings and tuples, slices of strings, literals | sum | library |
//! | `+`, slices, `range`, `items`, `keys`, `values` of lists and maps | lazy; nesting is bounded | library, `measure` when assigned |
//! | `==`, `<` and the like | time n; `measure` bounds what is assigned | library (outermost level), [`TimeLimit`] |
//! | `in` | time n, text of the left value | library, `measure` bounds the text |
//! | `set`, `with`, loops, parameters | depth and n of what they hold | here ([`measure`]) |
//! | `tojson` | n times depth and indentation | here ([`PaidText`]) |
//! | `join` (both), `indent` | n times the separator or width | here ([`PaidText`]) |
//! | `replace` (both) | n times the new text | here (counted matches) |
//! | `upper`, `lower`, `title`, `capitalize`, `escape` | 3n, 6n | here |
//! | `split`, `splitlines`, `lines` | 64 bytes per part | here (counted parts) |
//! | `strip` and the like | time n times its argument, of at most 64 characters | here |
//! | `str.format` | fields times arguments and widths, which are bounded | here |
//! | `format` | the same | library (widths), here (arguments) |
//! | `sort`, `dictsort`, `groupby`, `unique`, `min`, `max` | time n log n | here ([`pay_sorting`]) |
//! | `sum` | with lists n², with strings refused | here |
//! | `list`, `map`, `select`, `reject` and with attributes, `batch`, `slice`, `reverse`, `last` | n | library |
//! | tests `eq` to `ge`, `in`, `startingwith`, `endingwith` | time n | here |
//! | `count`, `find`, `startswith`, `isdigit` and the like | time n | library, here for lists |
//! | `strftime_now`, `raise_exception` | 12n, n | here |
//! | `dict`, `namespace` | n | library, after they are made |
//! | numbers, `round`, `int`, `float`, `abs`, `length`, `first`, `default`, `attr`, `bool`, other tests | constant or n | library |
//! | a character of a string by its index | time n | [`TimeLimit`] |
//! | `pprint`, `chain`, `zip`, `debug` | removed | |

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[cfg(target_arch = "wasm32")]
use instant::Instant;
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};
#[cfg(not(target_arch = "wasm32"))]
use std::time::Instant;

/// Containers within containers. Deeper ones come from hostile templates only.
pub(super) const MAX_NESTING: usize = 128;
/// Bytes of text that a step of fuel pays for, as in the library.
const BYTES_PER_STEP: usize = 64;
/// Steps per element of a visited container. Lists that are concatenated lazily are slow to visit.
const STEPS_PER_ELEMENT: u64 = 4;
/// Bytes that the text of one value may have, by [`measure`]. The operator `in` writes it without being charged.
const MAX_VALUE_BYTES: usize = 256 << 20;

/// Pays for `bytes` of text, before they are allocated.
pub(super) fn pay_bytes(state: &State, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes.div_ceil(BYTES_PER_STEP) as u64)
}

/// Visits everything in `value`, which costs fuel, down to a depth at which dropping and comparing it is safe. Returns
/// an upper bound on the bytes of its text.
pub(super) fn measure(state: &State, value: &Value) -> Result<usize, Error> {
    let bytes = match value.as_str() {
        Some(text) => text.len(),
        None => measure_within(state, value, 0)?,
    };
    match bytes > MAX_VALUE_BYTES {
        true => Err(Error::from(ErrorKind::OutOfFuel)),
        false => Ok(bytes),
    }
}

fn measure_within(state: &State, value: &Value, depth: usize) -> Result<usize, Error> {
    let is_map = match value.kind() {
        // An escaped character has up to 6 bytes.
        ValueKind::String => return Ok(8 + value.as_str().map_or(0, str::len).saturating_mul(6)),
        // The digits of the greatest float.
        ValueKind::Number if !value.is_integer() => return Ok(340),
        ValueKind::Seq | ValueKind::Iterable => false,
        ValueKind::Map => true,
        _ => return Ok(64),
    };
    if depth > MAX_NESTING {
        return Err(too_deep());
    }
    state.consume_fuel(STEPS_PER_ELEMENT * value.len().unwrap_or(0) as u64)?;
    let mut bytes = 8_usize;
    for element in value.try_iter()? {
        state.consume_fuel(STEPS_PER_ELEMENT)?;
        if is_map {
            let member = value.get_item(&element)?;
            bytes = bytes.saturating_add(measure_within(state, &member, depth + 1)?);
        }
        bytes = bytes.saturating_add(measure_within(state, &element, depth + 1)?);
    }
    Ok(bytes)
}

/// Pays for comparing the elements of `value` while they are sorted.
pub(super) fn pay_sorting(state: &State, value: &Value) -> Result<(), Error> {
    let comparisons = value.len().unwrap_or(0).max(2).ilog2() as usize + 1;
    pay_bytes(
        state,
        measure(state, value)?.saturating_mul(comparisons) / 6,
    )
}

pub(super) fn too_deep() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("a value is nested more than {MAX_NESTING} deep"),
    )
}

/// Text that is paid for as it grows.
pub(super) struct PaidText<'s, 'e, 't> {
    state: &'s State<'e, 't>,
    text: String,
    paid_bytes: usize,
}

impl<'s, 'e, 't> PaidText<'s, 'e, 't> {
    pub(super) fn new(state: &'s State<'e, 't>) -> PaidText<'s, 'e, 't> {
        PaidText {
            state,
            text: String::new(),
            paid_bytes: 0,
        }
    }

    pub(super) fn state(&self) -> &'s State<'e, 't> {
        self.state
    }

    pub(super) fn push(&mut self, character: char) -> Result<(), Error> {
        self.push_str(character.encode_utf8(&mut [0; 4]))
    }

    pub(super) fn push_str(&mut self, text: &str) -> Result<(), Error> {
        /// Paid at once.
        const PART_BYTES: usize = 4 * BYTES_PER_STEP;
        let bytes = self.text.len() + text.len();
        if bytes > self.paid_bytes {
            let part_bytes = (bytes - self.paid_bytes).max(PART_BYTES);
            pay_bytes(self.state, part_bytes)?;
            self.paid_bytes += part_bytes;
        }
        self.text.push_str(text);
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// The time when a rendering ends, whatever it does. What the library does not charge takes a bounded time per statement: to find
/// a character of a long string, to compare long strings.
#[derive(Debug)]
pub(super) struct TimeLimit {
    end: Instant,
    calls: AtomicU32,
}

impl TimeLimit {
    pub(super) fn new(limit: Duration) -> TimeLimit {
        TimeLimit {
            end: Instant::now() + limit,
            calls: AtomicU32::new(0),
        }
    }

    /// Called at each statement.
    pub(super) fn check(&self) -> Result<(), Error> {
        /// Looking at a browser's clock takes as long as some statements.
        const CALLS_PER_LOOK: u32 = 16;
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        match calls.is_multiple_of(CALLS_PER_LOOK) && Instant::now() > self.end {
            true => Err(Error::from(ErrorKind::OutOfFuel)),
            false => Ok(()),
        }
    }
}
