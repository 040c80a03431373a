//! Closes the objects and tuples of a JSON schema that does not say whether they are open (specification 9.2).
//! The schema was checked before (`schema`); what compiles it is outside this module.
//!
//! An object is described by all subschemas that apply to the same value: `allOf`, `anyOf`, `oneOf` and `$ref`. It is
//! closed in one of them, which gets the names that the others declare. Longer than other files: every keyword that combines
//! schemas takes part in one walk.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::budget::Budget;

/// Whether objects and tuples may hold more than the members and items that a schema names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    /// Objects and tuples hold no more, unless the schema says that they may.
    Closed,
    /// Objects and tuples may hold anything more, unless the schema forbids it: the rule of JSON Schema.
    Open,
}

/// The schema with `additionalProperties: false` and `items: false` where it names members or items and does not say
/// more.
///
/// # Errors
/// A message for humans if the schema combines too many parts.
pub(super) fn close(schema: &Value) -> Result<Value, String> {
    let mut closer = Closer {
        root: schema,
        // Combining copies schemas, so this counts apart from the checks of the schema.
        budget: Budget::default(),
        targets: Vec::new(),
        seen: HashSet::from([""]),
    };
    let mut closed = closer.value(schema)?;
    let mut targets = Vec::new();
    while let Some(path) = closer.targets.pop() {
        let target = schema.pointer(path).unwrap_or(&Value::Null);
        targets.push((path, closer.value(target)?));
    }
    // One may be inside of another.
    targets.sort_by_key(|(path, _)| path.len());
    for (path, target) in targets {
        if let Some(place) = closed.pointer_mut(path) {
            *place = target;
        }
    }
    Ok(closed)
}

/// The members that subschemas of one value name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    properties: Vec<String>,
    patterns: Vec<String>,
}

impl Names {
    fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.patterns.is_empty()
    }

    fn is_in(&self, other: &Names) -> bool {
        let properties = self.properties.iter();
        let patterns = self.patterns.iter();
        properties
            .chain(patterns)
            .all(|name| other.properties.contains(name) || other.patterns.contains(name))
    }
}

/// Whether a part of a schema closes the objects that it describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part<'n> {
    /// This part closes the objects; other parts name these members.
    Closes(&'n Names),
    /// Another part closes the objects, or the schema says that they may hold more.
    Open,
}

/// The division of a schema's objects among its subschemas.
struct Division<'n> {
    part: Part<'n>,
    /// The subschema that closes the objects. `None`: no subschema of this schema does.
    closer: Option<Place>,
    /// The members that other subschemas declare, for the closing one.
    told: Names,
}

struct Closer<'s> {
    root: &'s Value,
    budget: Budget,
    /// Targets of references that are to be closed.
    targets: Vec<&'s str>,
    /// Every path that was added to `targets`.
    seen: HashSet<&'s str>,
}

impl<'s> Closer<'s> {
    /// A schema that alone describes a value.
    fn value(&mut self, schema: &'s Value) -> Result<Value, String> {
        self.part(schema, Part::Closes(&Names::default()), &mut Vec::new())
    }

    /// One of the schemas that describe a value. `inside` are the references that led here.
    fn part(
        &mut self,
        schema: &'s Value,
        part: Part<'_>,
        inside: &mut Vec<&'s str>,
    ) -> Result<Value, String> {
        self.budget.count(1)?;
        let Value::Object(members) = schema else {
            return Ok(match (schema, part) {
                (Value::Bool(true), Part::Closes(names)) if !names.is_empty() => {
                    let mut closed = Map::new();
                    close_members(&mut closed, names);
                    Value::Object(closed)
                }
                _ => schema.clone(),
            });
        };
        let closer = match part {
            Part::Closes(names) if !self.is_decided(schema, &mut Vec::new()) => {
                self.closer(members, !names.is_empty())
            }
            _ => None,
        };
        let mut told = match part {
            Part::Closes(names) => names.clone(),
            Part::Open => Names::default(),
        };
        if closer.is_some() {
            self.names(schema, closer, &mut told, &mut Vec::new())?;
        }
        let division = Division { part, closer, told };
        let mut closed = Map::new();
        for (keyword, value) in members {
            let value = self.member(keyword, value, &division, inside)?;
            closed.insert(keyword.clone(), value);
        }
        self.close_reference(members, &mut closed, &division, inside)?;
        if closer == Some(Place::Own) {
            close_members(&mut closed, &division.told);
        }
        if part == Part::Closes(&Names::default()) {
            close_tuple(&mut closed);
        }
        Ok(Value::Object(closed))
    }

    /// The value of a keyword, with the schemas in it closed.
    fn member(
        &mut self,
        keyword: &str,
        value: &'s Value,
        division: &Division<'_>,
        inside: &mut Vec<&'s str>,
    ) -> Result<Value, String> {
        Ok(match (keyword, value) {
            ("properties" | "patternProperties", Value::Object(schemas)) => {
                let mut closed = Map::new();
                for (name, schema) in schemas {
                    closed.insert(name.clone(), self.value(schema)?);
                }
                Value::Object(closed)
            }
            ("items" | "additionalItems" | "additionalProperties", Value::Object(_)) => {
                self.value(value)?
            }
            ("items" | "prefixItems", Value::Array(schemas)) => {
                let schemas = schemas.iter().map(|schema| self.value(schema));
                schemas.collect::<Result<Vec<_>, _>>()?.into()
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                let mut parts = Vec::with_capacity(schemas.len());
                for (index, schema) in schemas.iter().enumerate() {
                    parts.push(self.subschema(
                        schema,
                        Place::of(keyword, index),
                        division,
                        inside,
                    )?);
                }
                parts.into()
            }
            _ => value.clone(),
        })
    }

    /// Closes the target of the `$ref` in `members`: a copy of it in `closed`, or the target itself later.
    fn close_reference(
        &mut self,
        members: &'s Map<String, Value>,
        closed: &mut Map<String, Value>,
        division: &Division<'_>,
        inside: &mut Vec<&'s str>,
    ) -> Result<(), String> {
        let Some(path) = local(members) else {
            return Ok(());
        };
        let Some(target) = self.root.pointer(path) else {
            return Ok(());
        };
        // The target of a reference that stands alone closes itself.
        let is_alone = match division.closer {
            Some(closer) => closer == Place::Reference && division.told.is_empty(),
            None => division.part != Part::Open && self.is_decided(target, &mut Vec::new()),
        };
        let is_copied =
            !is_alone && !inside.contains(&path) && self.declares(target, &mut Vec::new());
        if is_copied {
            inside.push(path);
            let target = self.subschema(target, Place::Reference, division, inside)?;
            inside.pop();
            closed.shift_remove("$ref");
            match closed.get_mut("allOf").and_then(Value::as_array_mut) {
                Some(all) => all.push(target),
                None => {
                    closed.insert("allOf".to_owned(), json!([target]));
                }
            }
        } else if self.seen.insert(path) {
            self.targets.push(path);
        }
        Ok(())
    }

    /// A subschema that describes the same value.
    fn subschema(
        &mut self,
        schema: &'s Value,
        place: Place,
        division: &Division<'_>,
        inside: &mut Vec<&'s str>,
    ) -> Result<Value, String> {
        let none = Names::default();
        let told = &division.told;
        let part = match division.closer {
            Some(closer) if closer == place => {
                // A part that names all of them is closed as if it were alone.
                let mut declared = Names::default();
                self.names(schema, None, &mut declared, &mut Vec::new())?;
                let is_alone = self.declares(schema, &mut Vec::new()) && told.is_in(&declared);
                Part::Closes(if is_alone { &none } else { told })
            }
            Some(_) => Part::Open,
            // Nothing here names members of objects. Tuples in it are closed.
            None if division.part != Part::Open && !self.declares(schema, &mut Vec::new()) => {
                Part::Closes(&none)
            }
            None => Part::Open,
        };
        self.part(schema, part, inside)
    }

    /// The part of a schema that closes its objects. `None`: it describes no members.
    fn closer(&self, members: &'s Map<String, Value>, is_told: bool) -> Option<Place> {
        let declares = |schema| self.declares(schema, &mut Vec::new());
        for group in ["anyOf", "oneOf"] {
            if array(members, group).iter().any(declares) {
                return Some(Place::of(group, 0));
            }
        }
        let all = array(members, "allOf");
        let divides = |schema| self.divides(schema, &mut Vec::new());
        if let Some(index) = all.iter().position(divides) {
            return Some(Place::All(index));
        }
        let target = local(members).and_then(|path| self.root.pointer(path));
        if target.is_some_and(divides) {
            return Some(Place::Reference);
        }
        if is_own(members) {
            return Some(Place::Own);
        }
        if target.is_some_and(declares) {
            return Some(Place::Reference);
        }
        if let Some(index) = all.iter().rposition(declares) {
            return Some(Place::All(index));
        }
        is_told.then_some(Place::Own)
    }

    /// Whether it names members of an object, itself or in subschemas.
    fn declares(&self, schema: &'s Value, inside: &mut Vec<&'s str>) -> bool {
        self.any(schema, inside, &|members, _| is_own(members))
    }

    /// Whether it names members in alternatives.
    fn divides(&self, schema: &'s Value, inside: &mut Vec<&'s str>) -> bool {
        self.any(schema, inside, &|members, is_branch| {
            is_branch && is_own(members)
        })
    }

    /// Whether it says itself what further members there may be, or lists its values.
    fn is_decided(&self, schema: &'s Value, inside: &mut Vec<&'s str>) -> bool {
        self.any(schema, inside, &|members, is_branch| {
            let says = ["additionalProperties", "const", "enum"];
            !is_branch && says.iter().any(|keyword| members.contains_key(*keyword))
        })
    }

    /// Whether `test` holds for the schema or a subschema of the same value. The test is told whether the subschema is an
    /// alternative.
    fn any(
        &self,
        schema: &'s Value,
        inside: &mut Vec<&'s str>,
        test: &dyn Fn(&Map<String, Value>, bool) -> bool,
    ) -> bool {
        let Value::Object(members) = schema else {
            return false;
        };
        if test(members, false) {
            return true;
        }
        if array(members, "allOf")
            .iter()
            .any(|schema| self.any(schema, inside, test))
        {
            return true;
        }
        let of_branch = |members: &Map<String, Value>, _: bool| test(members, true);
        for group in ["anyOf", "oneOf"] {
            let branches = array(members, group);
            if branches.iter().any(|it| self.any(it, inside, &of_branch)) {
                return true;
            }
        }
        self.follow(members, inside)
            .is_some_and(|target| self.any(target, inside, test))
    }

    /// The target of the schema's reference, at the first visit.
    fn follow(
        &self,
        members: &'s Map<String, Value>,
        inside: &mut Vec<&'s str>,
    ) -> Option<&'s Value> {
        let path = local(members).filter(|path| !inside.contains(path))?;
        inside.push(path);
        self.root.pointer(path)
    }

    /// Adds the members that the schema and its subschemas name, but for the part `except`.
    fn names(
        &mut self,
        schema: &'s Value,
        except: Option<Place>,
        names: &mut Names,
        inside: &mut Vec<&'s str>,
    ) -> Result<(), String> {
        self.budget.count(1)?;
        let Value::Object(members) = schema else {
            return Ok(());
        };
        let add = |list: &mut Vec<String>, name: &str| {
            if !list.iter().any(|known| known == name) {
                list.push(name.to_owned());
            }
        };
        if except != Some(Place::Own)
            && let Some(properties) = members.get("properties").and_then(Value::as_object)
        {
            let mut known: HashSet<String> = names.properties.iter().cloned().collect();
            for name in properties.keys() {
                if known.insert(name.clone()) {
                    names.properties.push(name.clone());
                }
            }
        }
        for name in array(members, "required").iter().filter_map(Value::as_str) {
            let is_own = members
                .get("properties")
                .is_some_and(|it| it.get(name).is_some());
            if !is_own {
                add(&mut names.properties, name);
            }
        }
        if except != Some(Place::Own) {
            let patterns = members.get("patternProperties").and_then(Value::as_object);
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                add(&mut names.patterns, pattern);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (index, schema) in array(members, keyword).iter().enumerate() {
                if except != Some(Place::of(keyword, index)) {
                    self.names(schema, None, names, inside)?;
                }
            }
        }
        if except != Some(Place::Reference)
            && let Some(target) = self.follow(members, inside)
        {
            self.names(target, None, names, inside)?;
        }
        Ok(())
    }
}

/// The place of a subschema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The schema's own `properties`.
    Own,
    /// An element of `allOf`.
    All(usize),
    /// Any branch of `anyOf`: all of them close together.
    Any,
    /// Any branch of `oneOf`.
    One,
    /// The target of `$ref`.
    Reference,
}

impl Place {
    fn of(keyword: &str, index: usize) -> Place {
        match keyword {
            "allOf" => Place::All(index),
            "anyOf" => Place::Any,
            _ => Place::One,
        }
    }
}

fn is_own(members: &Map<String, Value>) -> bool {
    members.contains_key("properties") || members.contains_key("patternProperties")
}

fn array<'s>(members: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    let elements = members.get(keyword).and_then(Value::as_array);
    elements.map(Vec::as_slice).unwrap_or_default()
}

/// The path of a reference below the root.
fn local(members: &Map<String, Value>) -> Option<&str> {
    let path = members.get("$ref")?.as_str()?.strip_prefix('#')?;
    Some(if path == "/" { "" } else { path })
}

/// Allows the members that `properties` and `told` name, and no others.
fn close_members(members: &mut Map<String, Value>, told: &Names) {
    for (keyword, names) in [
        ("properties", &told.properties),
        ("patternProperties", &told.patterns),
    ] {
        if names.is_empty() {
            continue;
        }
        let declared = members
            .entry(keyword)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(declared) = declared {
            for name in names {
                declared.entry(name).or_insert(Value::Bool(true));
            }
        }
    }
    members.insert("additionalProperties".to_owned(), false.into());
}

/// Allows no items after those of a tuple, unless its length says that there are more.
fn close_tuple(members: &mut Map<String, Value>) {
    let (tuple, rest) = match members.get("items") {
        Some(Value::Array(items)) => (items.len(), "additionalItems"),
        _ => match members.get("prefixItems") {
            Some(Value::Array(items)) => (items.len(), "items"),
            _ => return,
        },
    };
    let is_longer = ["minItems", "maxItems"].iter().any(|bound| {
        let bound = members.get(*bound).and_then(Value::as_u64);
        bound.is_some_and(|bound| bound > tuple as u64)
    });
    if !is_longer && !members.contains_key(rest) {
        members.insert(rest.to_owned(), false.into());
    }
}
