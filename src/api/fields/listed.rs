//! The declarations of fields as TypeScript and `docs/api.md` list them. Tests alone generate these. Longer than
//! other files: every kind of field has its listing in both forms.

use super::declare::{Field, Kind, Setting};
use super::kinds::{
    Biases, Count, Flag, Integer, Number, Shape, Strings, Text, TokenIds, Word, Words,
};
use crate::api::switches::Switches;

/// A group of fields.
pub(in crate::api) trait Group {
    const NAME: &'static str;

    fn members() -> Vec<Member>;

    /// Visits the types that the group's types name.
    fn visit_types(visitor: &mut impl ts_rs::TypeVisitor);
}

/// A group of the body of a route.
pub(in crate::api) struct ListedGroup {
    pub name: &'static str,
    pub members: Vec<Member>,
}

impl ListedGroup {
    pub(in crate::api) fn of<G: Group>() -> ListedGroup {
        ListedGroup {
            name: G::NAME,
            members: G::members(),
        }
    }
}

/// A field and its documentation.
pub(in crate::api) struct Member {
    /// The documentation in Markdown, on one line.
    pub docs: String,
    pub field: &'static dyn Listed,
}

impl Member {
    pub(in crate::api) fn new(docs: &[&str], field: &'static dyn Listed) -> Member {
        Member {
            docs: one_line(docs),
            field,
        }
    }

    fn typescript(&self) -> String {
        let field = self.field.typescript();
        let name = match self.field.name() {
            dotted if dotted.contains('.') => format!("\"{dotted}\""),
            name => name.to_owned(),
        };
        let docs = &self.docs;
        let is_any = field == "unknown";
        let member = match (self.field.is_required(), is_any) {
            (true, _) => format!("{name}: {field}"),
            (false, true) => format!("{name}?: {field}"),
            (false, false) => format!("{name}?: {field} | null"),
        };
        format!("\n/** {docs} */\n{member},")
    }

    /// A row of the tables in `docs/api.md`.
    pub(in crate::api) fn row(&self) -> String {
        let field = self.field;
        let cells = [
            format!("`{}`", field.name()),
            field.words(),
            field.default(),
            field.range(),
            self.docs.clone(),
            field.vendors().to_owned(),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
            .replace("|  |", "| |")
            .replace("|  |", "| |")
    }
}

/// The lines of a documentation comment as one.
fn one_line(docs: &[&str]) -> String {
    docs.iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The documentation of a type as a comment.
pub(in crate::api) fn comment(docs: &[&str]) -> String {
    format!("/** {} */\n", one_line(docs))
}

/// The type of an object with the fields of all groups; a later field replaces an earlier one of its name.
pub(in crate::api) fn object(groups: &[ListedGroup]) -> String {
    let members: Vec<&Member> = groups.iter().flat_map(|group| &group.members).collect();
    let last = |name: &str| members.iter().rposition(|it| it.field.name() == name);
    let lines = members
        .iter()
        .enumerate()
        .filter(|(index, member)| last(member.field.name()) == Some(*index))
        .map(|(_, member)| member.typescript());
    format!("{{{} }}", lines.collect::<String>())
}

/// The properties of a field in documents.
pub(in crate::api) trait Listed {
    fn name(&self) -> &'static str;
    fn is_required(&self) -> bool;
    /// The type without null, in TypeScript.
    fn typescript(&self) -> String;
    /// The type in words.
    fn words(&self) -> String;
    fn default(&self) -> String;
    fn range(&self) -> String;
    fn vendors(&self) -> &'static str;
}

/// The properties of a kind of fields in documents.
pub(in crate::api) trait ListedKind {
    fn typescript(&self) -> String;
    fn words(&self) -> String;
    /// The bounds in words.
    fn range(&self) -> String {
        String::new()
    }
    /// The default that the kind has by itself.
    fn default(&self) -> Option<String> {
        None
    }
}

/// A kind whose values can be written.
pub(in crate::api) trait Written: Kind {
    fn write(&self, value: Self::Value) -> String;
}

/// The default of a field of the kind `K`.
pub(in crate::api) trait ListedDefault<K> {
    fn write(&self, kind: &K) -> Option<String>;
}

impl<K: ListedKind> ListedDefault<K> for () {
    fn write(&self, kind: &K) -> Option<String> {
        kind.default()
    }
}

impl<K: Written> ListedDefault<K> for Setting<K::Value>
where
    K::Value: Copy,
{
    fn write(&self, kind: &K) -> Option<String> {
        Some(with_switch(*self, |value| kind.write(value)))
    }
}

impl<K: ListedKind, D: ListedDefault<K>> Listed for Field<K, D> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn is_required(&self) -> bool {
        self.notes.is_required
    }
    fn typescript(&self) -> String {
        let also = self.notes.also.map(|(_, typescript)| typescript);
        either(self.kind.typescript(), " | ", also)
    }
    fn words(&self) -> String {
        let also = self.notes.also.map(|(words, _)| words);
        either(self.kind.words(), " or ", also)
    }
    fn default(&self) -> String {
        let written = self.default.write(&self.kind);
        written.unwrap_or_else(|| self.notes.default.to_owned())
    }
    fn range(&self) -> String {
        let words = [self.kind.range(), self.notes.range.to_owned()];
        let words: Vec<_> = words.into_iter().filter(|it| !it.is_empty()).collect();
        words.join("; ")
    }
    fn vendors(&self) -> &'static str {
        self.notes.vendors
    }
}

fn either(one: String, or: &str, other: Option<&str>) -> String {
    match other {
        Some(other) => one + or + other,
        None => one,
    }
}

/// A value and the switch that sets it.
fn with_switch<T: Copy>(setting: Setting<T>, write: impl Fn(T) -> String) -> String {
    let value = write(setting.of(&Switches::default()));
    match setting {
        Setting::Fixed(_) => value,
        Setting::Switch(switch, _) => format!("{value} (`{switch}`)"),
    }
}

/// A number with a minus sign for people.
fn signed(number: impl std::fmt::Display) -> String {
    number.to_string().replace('-', "−")
}

impl ListedKind for Flag {
    fn typescript(&self) -> String {
        "boolean".into()
    }
    fn words(&self) -> String {
        "bool".into()
    }
}

impl Written for Flag {
    fn write(&self, value: bool) -> String {
        value.to_string()
    }
}

impl ListedKind for Count {
    fn typescript(&self) -> String {
        "number".into()
    }
    fn words(&self) -> String {
        "int".into()
    }
    fn range(&self) -> String {
        match self.most {
            Setting::Fixed(usize::MAX) => format!("≥ {}", self.least),
            most => {
                let most = with_switch(most, |most| most.to_string());
                format!("{}…{most}", self.least)
            }
        }
    }
}

impl Written for Count {
    fn write(&self, value: usize) -> String {
        value.to_string()
    }
}

impl ListedKind for Integer {
    fn typescript(&self) -> String {
        let exact = 1 << 53;
        let is_exact = self.least > -exact && (self.most < exact || self.most == i128::MAX);
        if is_exact {
            "number"
        } else {
            "number | bigint"
        }
        .into()
    }
    fn words(&self) -> String {
        "int".into()
    }
    fn range(&self) -> String {
        const LEAST_64: i128 = i64::MIN as i128;
        const MOST_64: i128 = i64::MAX as i128;
        match (self.least, self.most) {
            (LEAST_64, MOST_64) => "64 bits, signed".to_owned(),
            (least, i128::MAX) => format!("≥ {}", signed(least)),
            (least, most) => format!("{}…{}", signed(least), signed(most)),
        }
    }
}

impl Written for Integer {
    fn write(&self, value: i128) -> String {
        signed(value)
    }
}

impl ListedKind for Number {
    fn typescript(&self) -> String {
        "number".into()
    }
    fn words(&self) -> String {
        "number".into()
    }
    fn range(&self) -> String {
        match *self {
            Number::Within(least, Setting::Fixed(f64::INFINITY)) => format!("≥ {}", signed(least)),
            Number::Within(least, most) => {
                with_switch(most, |most| format!("{}…{most}", signed(least)))
            }
            Number::Positive(Setting::Fixed(f64::INFINITY)) => "above 0".to_owned(),
            Number::Positive(most) => with_switch(most, |most| format!("above 0, at most {most}")),
            Number::Around(most) => with_switch(most, |most| format!("−{most}…{most}")),
        }
    }
}

impl Written for Number {
    fn write(&self, value: f64) -> String {
        signed(value)
    }
}

impl<T> ListedKind for Word<T> {
    fn typescript(&self) -> String {
        let words = self.0.iter().map(|(word, _)| format!("\"{word}\""));
        words.collect::<Vec<_>>().join(" | ")
    }
    fn words(&self) -> String {
        let words = self.0.iter().map(|(word, _)| format!("`{word}`"));
        words.collect::<Vec<_>>().join(", ")
    }
}

impl<T: Copy + PartialEq> Written for Word<T> {
    fn write(&self, value: T) -> String {
        let found = self.0.iter().find(|(_, meaning)| *meaning == value);
        format!("`{}`", found.expect("a word with this meaning").0)
    }
}

impl ListedKind for Text {
    fn typescript(&self) -> String {
        "string".into()
    }
    fn words(&self) -> String {
        "string".into()
    }
}

impl ListedKind for Strings {
    fn typescript(&self) -> String {
        if self.or_one {
            "string | string[]"
        } else {
            "string[]"
        }
        .into()
    }
    fn words(&self) -> String {
        if self.or_one {
            "string or string[]"
        } else {
            "string[]"
        }
        .into()
    }
    fn range(&self) -> String {
        let mut range = match self.most {
            Setting::Fixed(usize::MAX) => String::new(),
            most => format!("at most {}, ", with_switch(most, |most| most.to_string())),
        };
        range.push_str("none empty");
        if self.most_bytes < usize::MAX {
            range.push_str(&format!(", {} KiB together", self.most_bytes >> 10));
        }
        range
    }
    fn default(&self) -> Option<String> {
        let strings = self.otherwise.iter().map(|it| format!("`{it:?}`"));
        (!self.otherwise.is_empty()).then(|| strings.collect::<Vec<_>>().join(", "))
    }
}

impl ListedKind for Biases {
    fn typescript(&self) -> String {
        "Record<string, number> | [number | string, number | false][]".into()
    }
    fn words(&self) -> String {
        "object or array".into()
    }
    fn range(&self) -> String {
        let range = with_switch(self.most, |most| format!("−{most}…{most}"));
        format!("at most {} entries of {range}", self.most_entries)
    }
}

impl ListedKind for Words {
    fn typescript(&self) -> String {
        let words = self.0.iter().map(|word| format!("\"{word}\""));
        words.collect::<Vec<_>>().join(" | ")
    }
    fn words(&self) -> String {
        let words = self.0.iter().map(|word| format!("`{word}`"));
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Written for Words {
    fn write(&self, value: &'static str) -> String {
        format!("`{value}`")
    }
}

impl ListedKind for TokenIds {
    fn typescript(&self) -> String {
        "number[]".into()
    }
    fn words(&self) -> String {
        "int[]".into()
    }
    fn range(&self) -> String {
        match self.0 {
            usize::MAX => String::new(),
            most => format!("at most {most}"),
        }
    }
}

impl ListedKind for Shape {
    fn typescript(&self) -> String {
        self.typescript.into()
    }
    fn words(&self) -> String {
        self.words.into()
    }
}
