//! Checks of JSON schemas before llguidance compiles them: schemas whose cost llguidance does not bound, or
//! that it would enforce incorrectly, are rejected. Longer than other files: one walk with one budget checks every keyword.

use std::collections::HashSet;

use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use serde_json::{Map, Value, json};

use super::budget::Budget;
use super::closed::{self, Objects};
use super::formats;
use super::regex;

/// Deepest nesting of subschemas, with references followed. llguidance recurses once per level, and the
/// stack of a wasm module is small.
const MAX_DEPTH: usize = 64;
/// Properties of one object: llguidance recurses once per property.
const MAX_PROPERTIES: usize = 512;
/// The work of a pattern.
const PATTERN_WORK: usize = 2_000;
/// The work per state of a divisibility check. There is one state per remainder, and with bounds one per
/// remainder and digit.
const REMAINDER_WORK: u64 = 200;

/// The white space between JSON tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whitespace {
    /// One space, or a line break and up to 16 spaces.
    Limited,
    /// There is no white space.
    None,
    /// Strings that match this regular expression.
    Pattern(String),
}

/// `schema` with this crate's options for llguidance: white space between JSON tokens is allowed, but
/// limited.
///
/// # Errors
/// A message for humans if llguidance would compile the schema incorrectly or without bounds on time and
/// stack. Errors that llguidance reports itself are left to it.
pub fn prepare(schema: &Value, objects: Objects, budget: &mut Budget) -> Result<Value, String> {
    prepare_spaced(schema, &Whitespace::Limited, objects, budget)
}

/// Same as [`prepare`], without keywords that llguidance lacks: they are not enforced.
///
/// # Errors
/// Same as [`prepare`], and if llguidance does not compile the schema even so.
pub fn prepare_leniently(
    schema: &Value,
    objects: Objects,
    budget: &mut Budget,
) -> Result<Value, String> {
    let mut prepared = prepare(schema, objects, budget)?;
    if let Some(options) = prepared.get_mut("x-guidance") {
        options["lenient"] = true.into();
    }
    let grammar = TopLevelGrammar::from_json_schema(prepared.clone());
    match GrammarInit::Serialized(grammar).to_internal(None, ParserLimits::default()) {
        Ok(_) => Ok(prepared),
        Err(error) => Err(error.to_string()),
    }
}

/// Same as [`prepare`], with the given white space. [`Whitespace::Limited`] is a default: the schema's own `x-guidance` may say
/// otherwise.
///
/// # Errors
/// Same as [`prepare`].
pub fn prepare_spaced(
    schema: &Value,
    whitespace: &Whitespace,
    objects: Objects,
    budget: &mut Budget,
) -> Result<Value, String> {
    check(schema, budget)?;
    let mut schema = match objects {
        Objects::Closed => closed::close(schema)?,
        Objects::Open => schema.clone(),
    };
    formats::bound(&mut schema);
    let mut options = Map::new();
    let own = schema.get("x-guidance").and_then(Value::as_object).cloned();
    let own = own.unwrap_or_default();
    let whitespace = match whitespace {
        Whitespace::Limited => &own_whitespace(&own)?,
        given => given,
    };
    let pattern = match whitespace {
        Whitespace::Limited => Some(r" |\n {0,16}"),
        Whitespace::None => None,
        Whitespace::Pattern(pattern) => {
            budget.spend(pattern_work(pattern)?)?;
            Some(pattern.as_str())
        }
    };
    options.insert("whitespace_flexible".to_owned(), pattern.is_some().into());
    if let Some(pattern) = pattern {
        options.insert("whitespace_pattern".to_owned(), pattern.into());
    }
    for name in ["item_separator", "key_separator"] {
        if let Some(separator) = text_option(&own, name)? {
            budget.spend(pattern_work(separator)?)?;
            options.insert(name.to_owned(), separator.into());
        }
    }
    Ok(match schema {
        Value::Object(mut members) => {
            members.insert("x-guidance".to_owned(), options.into());
            Value::Object(members)
        }
        Value::Bool(true) => json!({ "x-guidance": options }),
        other => other,
    })
}

/// The white space that a schema's own `x-guidance` requests, which clients of llguidance write.
fn own_whitespace(own: &Map<String, Value>) -> Result<Whitespace, String> {
    let is_flexible = match own.get("whitespace_flexible") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(is_flexible)) => *is_flexible,
        Some(_) => return Err("\"whitespace_flexible\" must be true or false".to_owned()),
    };
    // A pattern takes precedence over the flag, as it does in llguidance.
    Ok(match text_option(own, "whitespace_pattern")? {
        Some(pattern) => Whitespace::Pattern(pattern.to_owned()),
        None if is_flexible => Whitespace::Limited,
        None => Whitespace::None,
    })
}

/// A member of `x-guidance` that is a regular expression or null.
fn text_option<'o>(own: &'o Map<String, Value>, name: &str) -> Result<Option<&'o str>, String> {
    match own.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name:?} must be a string")),
    }
}

/// The work that compiles a regular expression beside the schema.
fn pattern_work(pattern: &str) -> Result<usize, String> {
    match regex::has_stop_group(pattern) {
        true => Err(regex::STOP_GROUP.to_owned()),
        false => Ok(PATTERN_WORK),
    }
}

/// The schema with `"type": "object"` added, because arguments are always an object.
///
/// # Errors
/// A message for humans if it allows no object.
pub fn object_schema(parameters: &Value) -> Result<Value, String> {
    let Value::Object(members) = parameters else {
        return Err("must be an object".to_owned());
    };
    let allows_objects = match members.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !allows_objects {
        return Err("\"type\" must be \"object\"".to_owned());
    }
    let mut members = members.clone();
    members.insert("type".to_owned(), "object".into());
    Ok(Value::Object(members))
}

fn check(schema: &Value, budget: &mut Budget) -> Result<(), String> {
    let mut check = Check {
        root: schema,
        followed: HashSet::new(),
        budget,
        multiples: Vec::new(),
        has_reference: false,
        has_inner_id: false,
    };
    check.schema(schema, 0)?;
    if check.has_reference && check.has_inner_id {
        return Err("\"$id\" below the root is not supported together with \"$ref\"".to_owned());
    }
    check.multiples()
}

struct Check<'s, 'b> {
    root: &'s Value,
    /// References that were followed.
    followed: HashSet<&'s str>,
    budget: &'b mut Budget,
    /// All values of `multipleOf`: coefficient and decimal places.
    multiples: Vec<(u64, u32)>,
    has_reference: bool,
    has_inner_id: bool,
}

impl<'s> Check<'s, '_> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("the schema is deeper than {MAX_DEPTH} levels"));
        }
        self.budget.count(1)?;
        let members = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(members) => members,
            _ => return Err("schema must be an object or boolean".to_owned()),
        };
        let parts_before = self.budget.parts();
        let mut alternatives = 0;
        for (keyword, value) in members {
            alternatives += self.keyword(keyword, value, depth)?;
        }
        self.count_properties(members)?;
        // Every alternative is intersected with a copy of the keywords beside it.
        if members.len() > 1 {
            self.budget
                .spend((self.budget.parts() - parts_before).saturating_mul(alternatives))?;
        }
        Ok(())
    }

    /// Checks one keyword; returns how many alternatives it adds.
    #[expect(
        clippy::too_many_lines,
        reason = "a flat match with an arm per keyword"
    )]
    fn keyword(
        &mut self,
        keyword: &'s str,
        value: &'s Value,
        depth: usize,
    ) -> Result<usize, String> {
        let expect = |right: bool, what: &str| match right {
            true => Ok(()),
            false => Err(format!("{keyword:?} must be {what}")),
        };
        match keyword {
            "properties" => {
                expect(value.is_object(), "an object")?;
                for property in value.as_object().into_iter().flat_map(Map::values) {
                    self.schema(property, depth + 1)?;
                }
            }
            "patternProperties" => {
                expect(value.is_object(), "an object")?;
                let patterns = value.as_object().into_iter().flatten();
                let mut count = 0usize;
                for (pattern, property) in patterns {
                    self.pattern(pattern)?;
                    self.schema(property, depth + 1)?;
                    count += 1;
                }
                // Every pattern is compared with every other.
                self.budget.spend(count * count * PATTERN_WORK)?;
            }
            "items" if !value.is_array() => self.schema(value, depth + 1)?,
            "additionalItems" | "additionalProperties" => self.schema(value, depth + 1)?,
            "items" | "prefixItems" | "anyOf" | "allOf" | "oneOf" => {
                let schemas = value.as_array();
                expect(schemas.is_some(), "an array")?;
                let schemas = schemas.map(Vec::as_slice).unwrap_or_default();
                for schema in schemas {
                    self.schema(schema, depth + 1)?;
                }
                if keyword == "oneOf" {
                    self.budget.spend(schemas.len() * schemas.len())?;
                }
                if keyword.ends_with("Of") {
                    return Ok(schemas.len());
                }
            }
            "$ref" => {
                expect(value.is_string(), "a string")?;
                self.reference(value.as_str().unwrap_or_default(), depth)?;
                return Ok(1);
            }
            "enum" => {
                expect(value.is_array(), "an array")?;
                let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for value in values {
                    self.constant(value, depth + 1)?;
                }
                return Ok(values.len());
            }
            "const" => {
                self.constant(value, depth + 1)?;
                return Ok(1);
            }
            "multipleOf" => self.multiple(value)?,
            "minimum" | "maximum" => self.number(keyword, value)?,
            "exclusiveMinimum" | "exclusiveMaximum" if !value.is_boolean() => {
                self.number(keyword, value)?;
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => expect(value.is_u64(), "a non-negative integer")?,
            "pattern" => {
                expect(value.is_string(), "a string")?;
                self.pattern(value.as_str().unwrap_or_default())?;
            }
            "format" => {
                expect(value.is_string(), "a string")?;
                self.budget.spend(PATTERN_WORK)?;
            }
            "required" => {
                let names = value.as_array();
                expect(
                    names.is_some_and(|names| names.iter().all(Value::is_string)),
                    "an array of strings",
                )?;
            }
            "$id" if depth > 0 => self.has_inner_id = true,
            _ => {}
        }
        Ok(0)
    }

    /// A value that the document must equal.
    fn constant(&mut self, value: &'s Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("a constant is deeper than {MAX_DEPTH} levels"));
        }
        self.budget.count(1)?;
        match value {
            Value::Number(_) => self.number("enum or const", value),
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| self.constant(item, depth + 1)),
            Value::Object(members) => {
                if members.len() > MAX_PROPERTIES {
                    return Err(too_many_properties());
                }
                members
                    .values()
                    .try_for_each(|member| self.constant(member, depth + 1))
            }
            _ => Ok(()),
        }
    }

    /// llguidance computes in f64 and, for integers, in i64.
    fn number(&self, keyword: &str, value: &Value) -> Result<(), String> {
        let Value::Number(number) = value else {
            return Err(format!("{keyword:?} must be a number"));
        };
        let exact = match (number.as_i64(), number.as_u64(), number.as_f64()) {
            // The largest i64 is a common way to write "no limit", and the value that f64 rounds it
            // to saturates back to it.
            (Some(i64::MAX), ..) => true,
            (Some(integer), _, Some(float)) => {
                float as i128 == i128::from(integer) && integer > i64::MIN
            }
            (None, Some(integer), Some(float)) => float as i128 == i128::from(integer),
            (None, None, Some(float)) => float.abs() < 9.2e18,
            _ => false,
        };
        if exact {
            Ok(())
        } else {
            Err(format!(
                "{keyword}: {number} has too many digits to be represented exactly"
            ))
        }
    }

    fn multiple(&mut self, value: &Value) -> Result<(), String> {
        let mut number = value.as_f64().unwrap_or_default();
        if !value.is_number() || number <= 0.0 {
            return Err("\"multipleOf\" must be a number greater than 0".to_owned());
        }
        // Decimal places as llguidance counts them.
        let mut places = 0;
        while number.fract() != 0.0 {
            number *= 10.0;
            places += 1;
        }
        if number > MAX_MULTIPLE as f64 || places > 8 {
            return Err(format!("multipleOf: {value} has too many digits"));
        }
        self.multiples.push((number as u64, places));
        self.spend_division(number as u64)
    }

    fn spend_division(&mut self, divisor: u64) -> Result<(), String> {
        // Divisibility by 2 and 5 depends only on the last digits, so these factors need no remainders.
        let mut remainders = divisor;
        for factor in [2, 5] {
            while remainders.is_multiple_of(factor) {
                remainders /= factor;
            }
        }
        let work = usize::try_from(remainders * REMAINDER_WORK);
        self.budget.spend(work.unwrap_or(usize::MAX))
    }

    /// Checks all values together: one number may have to be a multiple of several.
    fn multiples(&mut self) -> Result<(), String> {
        self.multiples.sort_unstable();
        self.multiples.dedup();
        if self.multiples.len() < 2 {
            return Ok(());
        }
        let places = self.multiples.iter().map(|multiple| multiple.1).max();
        let places = places.unwrap_or_default();
        let mut common = 1u64;
        for &(coefficient, own) in &self.multiples {
            let scaled = coefficient * 10u64.pow(places - own);
            // llguidance multiplies in u32 before it divides.
            let product = common.saturating_mul(scaled);
            common = product / greatest_common_divisor(common, scaled);
            if product > u64::from(u32::MAX) || common > MAX_MULTIPLE {
                return Err("the values of \"multipleOf\" have too many digits together".to_owned());
            }
        }
        self.spend_division(common)
    }

    fn reference(&mut self, reference: &'s str, depth: usize) -> Result<(), String> {
        self.has_reference = true;
        if !self.followed.insert(reference) {
            return Ok(());
        }
        if reference.contains(['~', '%']) {
            return Err(format!("$ref {reference:?}: escapes are not supported"));
        }
        let Some(path) = reference.strip_prefix('#') else {
            return Err(format!("$ref {reference:?} points outside the schema"));
        };
        if path.is_empty() || path == "/" {
            return Ok(());
        }
        match self.root.pointer(path) {
            Some(target) => self.schema(target, depth + 1),
            None => Err(format!("$ref {reference:?} has no target")),
        }
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        if regex::has_stop_group(pattern) {
            return Err(regex::STOP_GROUP.to_owned());
        }
        self.budget.spend(PATTERN_WORK)
    }

    fn count_properties(&mut self, members: &Map<String, Value>) -> Result<(), String> {
        let properties = members.get("properties").and_then(Value::as_object);
        let required = members.get("required").and_then(Value::as_array);
        let count = properties.map_or(0, Map::len) + required.map_or(0, Vec::len);
        if count > 2 * MAX_PROPERTIES || properties.map_or(0, Map::len) > MAX_PROPERTIES {
            return Err(too_many_properties());
        }
        self.budget.count(count)
    }
}

/// The largest divisor with which llguidance's remainders stay in u32.
const MAX_MULTIPLE: u64 = 100_000_000;

fn too_many_properties() -> String {
    format!("an object has more than {MAX_PROPERTIES} properties")
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}
