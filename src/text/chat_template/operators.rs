//! The operators whose results grow, written as calls of functions that charge for them first: `a ~ b` joins strings as
//! Python writes them, `a * b` repeats. The rest of an expression stays as it is.

/// The function of `~`: the strings of its arguments, joined.
pub(super) const JOINED: &str = "__joined";
/// The function of `*`: the product of its arguments.
pub(super) const PRODUCT: &str = "__product";

/// The token that follows an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    /// `~`.
    Concat,
    /// `*`, `/`, `//` or `%`.
    Multiplicative(&'static str),
    /// Anything that binds less: other operators, words, commas.
    Other(String),
}

/// The expressions in `text` with these operators replaced.
pub(super) fn replace(text: &str) -> String {
    let has_operator = text.contains(['~', '*']);
    match has_operator {
        true => rewritten(&operands(text)),
        false => text.to_owned(),
    }
}

/// The operands of one level of brackets, those within already rewritten.
fn operands(text: &str) -> Vec<(String, After)> {
    let mut operands = Vec::new();
    let mut operand = String::new();
    let mut is_after_is = false;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\'' | '"' => quoted_bytes(rest),
            '(' | '[' | '{' => bracketed_bytes(rest),
            _ if is_word(character) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("**") || rest.starts_with("//") => 2,
            _ => character.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        let has_operand = !operand.trim().is_empty();
        let next = match token {
            "~" => Some(After::Concat),
            "*" if has_operand => Some(After::Multiplicative("*")),
            "/" => Some(After::Multiplicative("/")),
            "//" => Some(After::Multiplicative("//")),
            "%" => Some(After::Multiplicative("%")),
            "+" | "-" if has_operand => Some(After::Other(token.into())),
            "," | ":" | "=" | "<" | ">" | "!" => Some(After::Other(token.into())),
            "and" | "or" | "not" | "if" | "else" | "in" | "recursive"
                if !is_after_is && !operand.trim_end().ends_with('.') =>
            {
                Some(After::Other(token.into()))
            }
            _ => None,
        };
        if token.starts_with(is_word) {
            is_after_is = token == "is" || (is_after_is && token == "not");
        }
        match next {
            Some(next) => operands.push((std::mem::take(&mut operand), next)),
            None if token.len() > 1 && token.starts_with(['(', '[', '{']) => {
                let ends = token.ends_with([')', ']', '}']);
                let inner = &token[1..token.len() - usize::from(ends)];
                operand.push_str(&token[..1]);
                operand.push_str(&replace(inner));
                operand.push_str(&token[1 + inner.len()..]);
            }
            None => operand.push_str(token),
        }
    }
    operands.push((operand, After::Other(String::new())));
    operands
}

/// Concatenations bind less than products and more than everything else that is not part of an operand.
fn rewritten(operands: &[(String, After)]) -> String {
    let mut text = String::new();
    for terms in operands.split_inclusive(|(_, after)| matches!(after, After::Other(_))) {
        let is_end = |(_, after): &(String, After)| !matches!(after, After::Multiplicative(_));
        let parts: Vec<String> = terms.split_inclusive(is_end).map(product).collect();
        match &parts[..] {
            [one] => text.push_str(one),
            parts => text.push_str(&call(JOINED, parts)),
        }
        if let Some((_, After::Other(after))) = terms.last() {
            text.push_str(after);
        }
    }
    text
}

/// The product that `factors` are, from left to right.
fn product(factors: &[(String, After)]) -> String {
    let mut factors = factors.iter();
    let Some((first, mut after)) = factors.next().cloned() else {
        return String::new();
    };
    // The operands that `*` joins.
    let mut pending = vec![first];
    for (factor, next) in factors {
        match &after {
            After::Multiplicative("*") => pending.push(factor.clone()),
            After::Multiplicative(operator) => {
                let left = joined_factors(&pending);
                pending = vec![format!("{left}{operator}{factor}")];
            }
            After::Concat | After::Other(_) => {}
        }
        after = next.clone();
    }
    joined_factors(&pending)
}

fn joined_factors(factors: &[String]) -> String {
    match factors {
        [one] => one.clone(),
        factors => call(PRODUCT, factors),
    }
}

fn call(function: &str, arguments: &[String]) -> String {
    let mut text = format!(" {function}(");
    for argument in arguments {
        text.push('(');
        text.push_str(argument);
        text.push_str("),");
    }
    text.push_str(") ");
    text
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The string that `text` begins with.
fn quoted_bytes(text: &str) -> usize {
    let mut characters = text.char_indices();
    let quote = characters.next().map(|(_, quote)| quote);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            _ if Some(character) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The bracket that `text` begins with, with everything in it.
fn bracketed_bytes(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        at += match character {
            '\'' | '"' => quoted_bytes(&text[at..]),
            _ => character.len_utf8(),
        };
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_become_calls() {
        let without_spaces = |text: &str| text.replace(' ', "");
        for (expression, expected) in [
            ("a ~ b", "__joined((a),(b),)"),
            ("a ~ b ~ c + d", "__joined((a),(b),(c),)+d"),
            ("a + b ~ c", "a+__joined((b),(c),)"),
            ("a ~ b * c", "__joined((a),(__product((b),(c),)),)"),
            ("a * -b * c", "__product((a),(-b),(c),)"),
            ("a / b * c % d", "__product((a/b),(c),)%d"),
            ("a ** b * c", "__product((a**b),(c),)"),
            (
                "-a.b[1 * 2] * c|f(d ~ e)",
                "__product((-a.b[__product((1),(2),)]),(c|f(__joined((d),(e),))),)",
            ),
            ("a if b * c else d", "aif__product((b),(c),)elsed"),
            ("x is not in y ~ z", "__joined((xisnotiny),(z),)"),
            ("'~' ~ \"a\\\"*\" in b", "__joined(('~'),(\"a\\\"*\"),)inb"),
            (
                "{'a': b * 2, 'c': -1 * d}",
                "{'a':__product((b),(2),),'c':__product((-1),(d),)}",
            ),
            ("f(*a, b == c * 2)", "f(*a,b==__product((c),(2),))"),
        ] {
            assert_eq!(without_spaces(&replace(expression)), expected);
        }
    }

    #[test]
    fn everything_else_stays() {
        for expression in [
            "",
            " a + b|f('~') ",
            "'a * b'[1:]",
            "f(**a)",
            "(",
            "[~",
            "'~",
            ")*",
        ] {
            let _ = replace(expression);
        }
        assert_eq!(
            replace(" a - b if not c else 'é ~' "),
            " a - b if not c else 'é ~' "
        );
    }
}
