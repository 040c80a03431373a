//! Statements that the library reads differently than Jinja2, or does not bound, are written in another way before the
//! template is parsed: loops refuse `none`, `{% generation %}` is a block, and what is assigned passes a check.

use super::operators;

/// The function that a loop's iterable goes through: an error for `none`, else as [`CHECKED`].
pub(super) const ITERABLE: &str = "__iterable";
/// The same for a variable, whose value was checked when it was assigned.
pub(super) const LISTED: &str = "__listed";
/// The function that assigned values go through: an error if they are too large or nested too deep. Concatenated lists
/// are lazy in the library and cost no fuel, so doubling one forty times would fill the memory.
pub(super) const CHECKED: &str = "__checked";
/// The function that conditions begin with: an error if the rendering takes too long.
pub(super) const CONTINUES: &str = "__continues";

/// Blocks within blocks, each `elif` counted as one. The library reads and drops them recursively, and a page's wasm
/// stack has 1 MB.
const MAX_BLOCKS: usize = 48;
/// Brackets within brackets.
const MAX_BRACKETS: usize = 24;
/// Words, numbers and signs of one tag besides strings: operators in a row are nested as well.
const MAX_TAG_TOKENS: usize = 400;

/// `template` with these statements replaced. What is no template is left to the parser.
///
/// # Errors
/// The error names what is nested too deep or the tag that is too long.
pub(super) fn rewrite(template: &str) -> Result<String, &'static str> {
    let mut result = String::with_capacity(template.len() + 256);
    let mut blocks = Blocks::default();
    let mut rest = template;
    while let Some(start) = next_opener(rest) {
        result.push_str(&rest[..start]);
        rest = &rest[start..];
        let Some(end) = tag_end(rest) else {
            break;
        };
        let (tag, after) = rest.split_at(end);
        let mut after = after;
        check_tag(tag)?;
        if tag.starts_with("{{") {
            let (start, content) = inner(tag);
            result.push_str(&tag[..start]);
            result.push_str(&operators::replace(content));
            result.push_str(&tag[start + content.len()..]);
        } else if !tag.starts_with("{%") {
            result.push_str(tag);
        } else if word(tag) == "raw" {
            // Its content is text up to the tag that ends it.
            let ends = ["{% endraw", "{%- endraw", "{%endraw", "{%-endraw"];
            let end = ends.iter().filter_map(|end| after.find(end)).min();
            let (content, next) = after.split_at(end.unwrap_or(after.len()));
            result.push_str(tag);
            result.push_str(content);
            after = next;
        } else {
            blocks.enter(tag)?;
            result.push_str(&statement(tag));
        }
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

/// The depth of nested blocks.
#[derive(Default)]
struct Blocks {
    /// The depth of each open block and its branches.
    open: Vec<usize>,
    depth: usize,
}

impl Blocks {
    fn enter(&mut self, tag: &str) -> Result<(), &'static str> {
        let word = word(tag);
        match word {
            "elif" => {
                if let Some(depth) = self.open.last_mut() {
                    *depth += 1;
                    self.depth += 1;
                }
            }
            "if" | "for" | "macro" | "call" | "filter" | "with" | "autoescape" | "generation" => {
                self.open.push(1);
                self.depth += 1;
            }
            "set" if !tag.contains('=') => {
                self.open.push(1);
                self.depth += 1;
            }
            _ if word.starts_with("end") => self.depth -= self.open.pop().unwrap_or(0),
            _ => {}
        }
        match self.depth > MAX_BLOCKS {
            true => Err("its blocks are nested too deep"),
            false => Ok(()),
        }
    }
}

/// Refuses a tag that would make a deep tree.
fn check_tag(tag: &str) -> Result<(), &'static str> {
    if tag.starts_with("{#") {
        return Ok(());
    }
    let (mut tokens, mut depth, mut is_in_word, mut quote) = (0, 0_usize, false, None);
    let mut characters = tag[2..tag.len() - 2].chars();
    while let Some(character) = characters.next() {
        match quote {
            Some(_) if character == '\\' => drop(characters.next()),
            Some(open) => {
                if open == character {
                    quote = None;
                }
            }
            None => {
                let is_word = character.is_alphanumeric() || character == '_';
                let begins_token = !is_word || !is_in_word;
                tokens += usize::from(begins_token && !character.is_whitespace());
                is_in_word = is_word;
                match character {
                    '\'' | '"' => quote = Some(character),
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth > MAX_BRACKETS {
                    return Err("its brackets are nested too deep");
                }
            }
        }
    }
    match tokens > MAX_TAG_TOKENS {
        true => Err("one of its tags is too long"),
        false => Ok(()),
    }
}

fn next_opener(text: &str) -> Option<usize> {
    let openers = text.match_indices('{');
    let is_opener = |at: &usize| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
    openers.map(|(at, _)| at).find(is_opener)
}

/// The end of the tag that `text` begins with.
fn tag_end(text: &str) -> Option<usize> {
    let closer = match text.as_bytes().get(1)? {
        b'{' => "}}",
        b'%' => "%}",
        // Comments have neither strings nor brackets.
        _ => return text.find("#}").map(|at| at + 2),
    };
    let end = top_level(&text[2..], |rest| rest.starts_with(closer))?;
    Some(2 + end + 2)
}

/// The first place in an expression, outside of strings and brackets, where `is_end` holds for the rest.
fn top_level(text: &str, is_end: impl Fn(&str) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, _) if depth == 0 && is_end(&text[at..]) => return Some(at),
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

/// The text between the delimiters of a tag, and where it begins.
fn inner(tag: &str) -> (usize, &str) {
    let inner = &tag[2..tag.len() - 2];
    let start = usize::from(inner.starts_with(['-', '+']));
    let end = inner.len() - usize::from(inner.len() > start && inner.ends_with(['-', '+']));
    (2 + start, &inner[start..end])
}

/// The first word of a tag.
fn word(tag: &str) -> &str {
    let (_, inner) = inner(tag);
    let inner = inner.trim_start();
    let is_end = |character: char| !character.is_alphanumeric() && character != '_';
    &inner[..inner.find(is_end).unwrap_or(inner.len())]
}

fn statement(tag: &str) -> String {
    let (start, content) = inner(tag);
    let (open, close) = (&tag[..start], &tag[start + content.len()..]);
    let word = word(tag);
    let body = content.trim_start();
    let body = body.strip_prefix(word).unwrap_or(body);
    let replaced = match word {
        "generation" => " if true ".to_owned(),
        "endgeneration" => " endif ".to_owned(),
        "if" | "elif" => format!(" {word} {CONTINUES}() and ({}) ", operators::replace(body)),
        "for" => match checked_loop(content) {
            Some(checked) => checked,
            None => return tag.to_owned(),
        },
        "set" | "with" => {
            let content = format!(" {word}{}", operators::replace(body));
            checked_assignments(&content).unwrap_or(content)
        }
        _ => match operators::replace(body) {
            same if same == body => content.to_owned(),
            replaced => format!(" {word}{replaced}"),
        },
    };
    // The arguments of a macro, of the body of a call or of a recursive loop have not been checked.
    let names = match word {
        "macro" => body.find('(').and_then(|at| parameters(&body[at..])),
        "call" => parameters(body),
        "for" if is_recursive(body) => {
            let end = top_level(body, |rest| is_word(rest, "in")).unwrap_or(0);
            Some(body[..end].trim().to_owned())
        }
        _ => None,
    };
    let mut statement = format!("{open}{replaced}{close}");
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        statement.push_str(&format!("{{% set {names} = {CHECKED}(({names})) {close}"));
    }
    statement
}

fn is_recursive(body: &str) -> bool {
    top_level(body, |rest| is_word(rest, "recursive")).is_some()
}

/// The names in the brackets that `text` begins with, without defaults.
fn parameters(text: &str) -> Option<String> {
    let mut rest = text.trim_start().strip_prefix('(')?;
    let mut names = Vec::new();
    loop {
        let end = top_level(rest, |rest| rest.starts_with([',', ')']))?;
        let (parameter, after) = rest.split_at(end);
        let name = parameter.split('=').next().unwrap_or_default().trim();
        if !name.is_empty() {
            names.push(name);
        }
        rest = after.strip_prefix(',').unwrap_or_default();
        if rest.is_empty() {
            return Some(names.join(", "));
        }
    }
}

/// `for x in a if b` as `for x in __iterable((a)) if b`.
fn checked_loop(content: &str) -> Option<String> {
    let after_in = top_level(content, |rest| is_word(rest, "in"))? + " in".len();
    let (target, rest) = content.split_at(after_in);
    // A condition of the loop cannot be confused with `a if b else c`, which needs parentheses here.
    let end = top_level(rest, |rest| {
        is_word(rest, "if") || is_word(rest, "recursive")
    });
    let (iterable, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let is_name =
        |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | ' ');
    let function = match iterable.contains(|character: char| !is_name(character)) {
        true => ITERABLE,
        false => LISTED,
    };
    let (iterable, rest) = (operators::replace(iterable), operators::replace(rest));
    Some(format!("{target} {function}(({iterable})){rest}"))
}

/// `set x = a` as `set x = __checked((a))`, and the same for every variable of `with x = a, y = b`.
fn checked_assignments(content: &str) -> Option<String> {
    let is_with = content.trim_start().starts_with("with");
    let mut result = String::new();
    let mut rest = content;
    while let Some(at) = top_level(rest, |rest| rest.starts_with('=')) {
        let (target, value) = rest.split_at(at + 1);
        let end = top_level(value, |rest| is_with && rest.starts_with(','));
        let (value, after) = value.split_at(end.unwrap_or(value.len()));
        result.push_str(&format!("{target} {CHECKED}(({value}))"));
        rest = after;
    }
    result.push_str(rest);
    (!result.is_empty()).then_some(result)
}

/// Whether `text` begins with white space and the word `word`.
fn is_word(text: &str, word: &str) -> bool {
    let rest = text.strip_prefix([' ', '\n', '\t', '\r']);
    let after = rest.and_then(|rest| rest.strip_prefix(word));
    after
        .is_some_and(|after| !after.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_generation_tags_are_replaced() {
        for (template, expected) in [
            (
                "a{% generation %}b{%- endgeneration -%}c",
                "a{% if true %}b{%- endif -%}c",
            ),
            ("{%- for x in a %}", "{%- for x in __listed(( a ))%}"),
            (
                "{% for x, y in f('in if', [1]) if y in z -%}",
                "{% for x, y in __iterable(( f('in if', [1]))) if y in z -%}",
            ),
            (
                "{% for x in a.b recursive %}",
                "{% for x in __listed(( a.b)) recursive %}{% set x = __checked((x)) %}",
            ),
            ("{% for x in '%}' %}", "{% for x in __iterable(( '%}' ))%}"),
            (
                "{%- set a.b = x == 1 -%}",
                "{%- set a.b = __checked(( x == 1 ))-%}",
            ),
            (
                "{% set a, b = 1, f(c=2) %}",
                "{% set a, b = __checked(( 1, f(c=2) ))%}",
            ),
            (
                "{% with a = [1, 2], b='=' %}",
                "{% with a = __checked(( [1, 2])), b= __checked(('=' ))%}",
            ),
            (
                "{% if a ~ b %}{%- elif c -%}",
                "{% if __continues() and ( __joined(( a ),( b ),) ) %}{%- elif __continues() and ( c ) -%}",
            ),
            (
                "{%- macro f(a, b='x,)') -%}{% call(c) f(d * 2) %}{% call f(d) %}",
                "{%- macro f(a, b='x,)') -%}{% set a, b = __checked((a, b)) -%}\
                 {% call(c) f( __product((d ),( 2),) ) %}{% set c = __checked((c)) %}{% call f(d) %}",
            ),
            ("{{- a ~ '}}' -}}", "{{- __joined(( a ),( '}}' ),) -}}"),
        ] {
            assert_eq!(rewrite(template).unwrap(), expected);
        }
    }

    #[test]
    fn everything_else_stays() {
        for template in [
            "",
            "{",
            "{%",
            "{% for",
            "{% form in a %}",
            "{{ '{% for x in a %}' }}{{ {'a': {}} }}",
            "{# {% for x in a %} #}",
            "{% raw %}{% for x in a %}{% endraw %}",
            "é { %} {{ 'it\\'s {% generation %}' }}",
            "{{ '{% for y in z %}' == 1 }}",
            "{% set x %}a{% endset %}",
            "{% with %}",
        ] {
            assert_eq!(rewrite(template).unwrap(), template);
        }
    }
}
