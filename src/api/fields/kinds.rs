//! The kinds of request fields: what a field may be, and how it is read. What documents and TypeScript say about a kind is in
//! `listed`.

use serde_json::Value;

use super::declare::{Field, Kind, Setting};
use super::reader::{
    Fields, MAX_TEXT_BYTES, check_text_bytes, invalid_type, invalid_value, out_of_range,
};
use crate::Result;
use crate::api::switches::Switches;

/// A boolean.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Flag;

/// An integer that counts something; values beyond `usize` become `usize::MAX`.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Count {
    pub least: usize,
    /// The largest value; `usize::MAX` if there is no limit.
    pub most: Setting<usize>,
}

/// An integer.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Integer {
    pub least: i128,
    /// The largest value; `i128::MAX` if there is no limit.
    pub most: i128,
}

/// A number.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) enum Number {
    /// The number is at least the first and at most the second.
    Within(f64, Setting<f64>),
    /// The number is above 0 and at most this.
    Positive(Setting<f64>),
    /// A number whose absolute value is at most the setting.
    Around(Setting<f64>),
}

/// One of a few words, and what each means.
#[derive(Debug)]
pub(in crate::api) struct Word<T: 'static>(pub &'static [(&'static str, T)]);

/// A string.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Text;

/// One of a few words.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Words(pub &'static [&'static str]);

/// An array of strings, none of them empty.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Strings {
    /// `usize::MAX`: any number.
    pub most: Setting<usize>,
    /// Bytes of all together; `usize::MAX`: any.
    pub most_bytes: usize,
    /// Whether a string alone is an array of one.
    pub or_one: bool,
    /// The meaning of an absent field; empty: none.
    pub otherwise: &'static [&'static str],
}

/// Numbers that are added to the logits of tokens.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct Biases {
    pub most_entries: usize,
    /// The largest absolute value.
    pub most: Setting<f64>,
}

/// An array of at most this many token ids.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct TokenIds(pub usize);

/// A value that the group's parser reads by itself.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "for documents"))]
pub(in crate::api) struct Shape {
    /// Its type, in words.
    pub words: &'static str,
    /// Its type in TypeScript, without null.
    pub typescript: &'static str,
}

pub(in crate::api) const fn flag() -> Field<Flag> {
    Field::new(Flag)
}

/// A number of things, at least `least`.
pub(in crate::api) const fn count(least: usize) -> Field<Count> {
    let most = Setting::Fixed(usize::MAX);
    Field::new(Count { least, most })
}

/// An integer that is at least `least`.
pub(in crate::api) const fn integer(least: i128) -> Field<Integer> {
    Field::new(Integer {
        least,
        most: i128::MAX,
    })
}

pub(in crate::api) const fn number(kind: Number) -> Field<Number> {
    Field::new(kind)
}

/// A number that is at least `least`.
pub(in crate::api) const fn number_from(least: f64) -> Field<Number> {
    Field::new(Number::Within(least, Setting::Fixed(f64::INFINITY)))
}

/// A number from 0 to 1.
pub(in crate::api) const fn share() -> Field<Number> {
    Field::new(Number::Within(0.0, Setting::Fixed(1.0)))
}

pub(in crate::api) const fn word<T>(words: &'static [(&'static str, T)]) -> Field<Word<T>> {
    Field::new(Word(words))
}

pub(in crate::api) const fn text() -> Field<Text> {
    Field::new(Text)
}

pub(in crate::api) const fn words(words: &'static [&'static str]) -> Field<Words> {
    Field::new(Words(words))
}

/// Any number of them.
pub(in crate::api) const fn strings() -> Field<Strings> {
    Field::new(Strings {
        most: Setting::Fixed(usize::MAX),
        most_bytes: usize::MAX,
        or_one: false,
        otherwise: &[],
    })
}

pub(in crate::api) const fn biases(most_entries: usize, most: Setting<f64>) -> Field<Biases> {
    Field::new(Biases { most_entries, most })
}

pub(in crate::api) const fn token_ids(most: usize) -> Field<TokenIds> {
    Field::new(TokenIds(most))
}

pub(in crate::api) const fn shape(words: &'static str, typescript: &'static str) -> Field<Shape> {
    Field::new(Shape { words, typescript })
}

/// Any value, which is not used.
pub(in crate::api) const fn unused() -> Field<Shape> {
    shape("any", "unknown")
}

impl Field<Count> {
    pub(in crate::api) const fn at_most(mut self, most: usize) -> Field<Count> {
        self.kind.most = Setting::Fixed(most);
        self
    }

    /// The most is the value of the switch.
    pub(in crate::api) const fn up_to(
        mut self,
        switch: &'static str,
        most: fn(&Switches) -> usize,
    ) -> Field<Count> {
        self.kind.most = Setting::Switch(switch, most);
        self
    }
}

impl Field<Integer> {
    pub(in crate::api) const fn at_most(mut self, most: i128) -> Field<Integer> {
        self.kind.most = most;
        self
    }
}

impl Field<Strings> {
    pub(in crate::api) const fn at_most(mut self, most: usize) -> Field<Strings> {
        self.kind.most = Setting::Fixed(most);
        self
    }

    /// The number of items is at most the value of the switch.
    pub(in crate::api) const fn up_to(
        mut self,
        switch: &'static str,
        most: fn(&Switches) -> usize,
    ) -> Field<Strings> {
        self.kind.most = Setting::Switch(switch, most);
        self
    }

    /// A string alone is an array of one.
    pub(in crate::api) const fn or_one(mut self) -> Field<Strings> {
        self.kind.or_one = true;
        self
    }

    /// The meaning of an absent field.
    pub(in crate::api) const fn otherwise(
        mut self,
        strings: &'static [&'static str],
    ) -> Field<Strings> {
        self.kind.otherwise = strings;
        self
    }

    /// Short enough to be tokenized before the request is admitted.
    pub(in crate::api) const fn short(mut self) -> Field<Strings> {
        self.kind.most_bytes = MAX_TEXT_BYTES;
        self
    }
}

impl Kind for Flag {
    type Value = bool;

    fn read(self, name: &str, fields: &Fields, _: &Switches) -> Result<Option<bool>> {
        fields.boolean(name)
    }
}

impl Kind for Count {
    type Value = usize;

    fn read(self, name: &str, fields: &Fields, switches: &Switches) -> Result<Option<usize>> {
        let most = match self.most.of(switches) {
            usize::MAX => i128::MAX,
            most => most as i128,
        };
        let count = fields.integer(name, self.least as i128..=most)?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }
}

impl Kind for Integer {
    type Value = i128;

    fn read(self, name: &str, fields: &Fields, _: &Switches) -> Result<Option<i128>> {
        fields.integer(name, self.least..=self.most)
    }
}

impl Kind for Number {
    type Value = f64;

    fn read(self, name: &str, fields: &Fields, switches: &Switches) -> Result<Option<f64>> {
        match self {
            Number::Within(least, most) => fields.number_in(name, least..=most.of(switches)),
            Number::Positive(most) => fields.positive_number(name, most.of(switches)),
            Number::Around(most) => {
                let most = most.of(switches);
                fields.number_in(name, -most..=most)
            }
        }
    }
}

impl<T> Clone for Word<T> {
    fn clone(&self) -> Word<T> {
        *self
    }
}

impl<T> Copy for Word<T> {}

impl<T: Copy> Kind for Word<T> {
    type Value = T;

    fn read(self, name: &str, fields: &Fields, _: &Switches) -> Result<Option<T>> {
        let words: Vec<_> = self.0.iter().map(|(word, _)| *word).collect();
        let given = fields.word(name, &words)?;
        let meant = self.0.iter().find(|(word, _)| Some(*word) == given);
        Ok(meant.map(|(_, meaning)| *meaning))
    }
}

impl Kind for Text {
    type Value = String;

    fn read(self, name: &str, fields: &Fields, _: &Switches) -> Result<Option<String>> {
        Ok(fields.string(name)?.map(str::to_owned))
    }
}

impl Kind for Strings {
    type Value = Vec<String>;

    fn read(self, name: &str, fields: &Fields, switches: &Switches) -> Result<Option<Vec<String>>> {
        let strings = match fields.get(name) {
            Some(Value::String(one)) if self.or_one => vec![one.clone()],
            Some(other) if self.or_one && !other.is_array() => {
                return Err(invalid_type(name, "a string or an array", other));
            }
            _ => match fields.array(name)? {
                Some(elements) => string_elements(name, elements)?,
                None if self.otherwise.is_empty() => return Ok(None),
                None => self.otherwise.iter().map(|it| (*it).to_owned()).collect(),
            },
        };
        let most = self.most.of(switches);
        if strings.len() > most {
            let bounds = format!("at most {most} strings");
            return Err(out_of_range(name, &bounds, strings.len()));
        }
        if strings.iter().any(String::is_empty) {
            return Err(invalid_value(name, "a string of it must not be empty"));
        }
        let lengths = strings.iter().map(String::len);
        check_text_bytes(name, lengths.sum(), self.most_bytes)?;
        Ok(Some(strings))
    }
}

fn string_elements(name: &str, elements: &[Value]) -> Result<Vec<String>> {
    let text = |element: &Value| match element.as_str() {
        None => Err(invalid_type(name, "made of strings", element)),
        Some(text) => Ok(text.to_owned()),
    };
    elements.iter().map(text).collect()
}

impl Kind for Words {
    type Value = &'static str;

    fn read(self, name: &str, fields: &Fields, _: &Switches) -> Result<Option<&'static str>> {
        fields.word(name, self.0)
    }
}

impl Kind for TokenIds {
    type Value = Vec<u32>;

    fn read(self, name: &str, fields: &Fields, _: &Switches) -> Result<Option<Vec<u32>>> {
        let Some(ids) = fields.token_ids(name)? else {
            return Ok(None);
        };
        match ids.len() > self.0 {
            true => {
                let bounds = format!("at most {} ids", self.0);
                Err(out_of_range(name, &bounds, ids.len()))
            }
            false => Ok(Some(ids)),
        }
    }
}
