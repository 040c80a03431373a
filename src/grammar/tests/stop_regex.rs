//! Regular expressions that end a text, against the crate `regex`.

use proptest::prelude::*;

use super::*;
use crate::text::StopMatcher;

/// Matches of each of them have at most four characters, or can be completed with at most three.
const EXPRESSIONS: &[&str] = &[
    "a",
    "ab|ba",
    "a[ab]b",
    "é+b",
    "(a|é)(b|a){1,2}",
    "b.a",
    "[^a]{2}",
    "a.*b",
    "(?i)AB",
    r"\w\W",
];

const LETTERS: [char; 4] = ['a', 'b', 'é', '.'];

/// All strings of at most three letters.
fn short_texts() -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut from = 0;
    for _ in 0..3 {
        let end = texts.len();
        for text in from..end {
            texts.extend(LETTERS.map(|letter| format!("{}{letter}", texts[text])));
        }
        from = end;
    }
    texts
}

/// Whether the whole of a text matches.
fn whole(expression: &str) -> ::regex::Regex {
    ::regex::Regex::new(&format!(r"\A(?:{expression})\z")).unwrap()
}

/// The text before the first match that ends, the longest of those that end together, and which expression it is.
fn naive(text: &str, expressions: &[&str]) -> (String, Option<usize>) {
    let wholes: Vec<_> = expressions.iter().map(|it| whole(it)).collect();
    for (start, character) in text.char_indices() {
        let prefix = &text[..start + character.len_utf8()];
        for (cut, _) in prefix.char_indices() {
            if let Some(index) = wholes.iter().position(|it| it.is_match(&prefix[cut..])) {
                return (prefix[..cut].to_owned(), Some(index));
            }
        }
    }
    (text.to_owned(), None)
}

/// The length of the longest suffix with which a match may begin.
fn naive_held_bytes(text: &str, expressions: &[&str], completions: &[String]) -> usize {
    let wholes: Vec<_> = expressions.iter().map(|it| whole(it)).collect();
    let begins = |suffix: &str| {
        let texts = completions.iter().map(|rest| format!("{suffix}{rest}"));
        texts
            .into_iter()
            .any(|text| wholes.iter().any(|it| it.is_match(&text)))
    };
    let starts = text.char_indices().map(|(start, _)| start);
    let mut held = starts.map(|start| &text[start..]).filter(|it| begins(it));
    held.next().map_or(0, str::len)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn stops_where_a_match_first_ends(
        text in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..10),
        chosen in prop::sample::subsequence(EXPRESSIONS, 1..3),
        piece_chars in 1..4_usize,
    ) {
        let completions = short_texts();
        let patterns: Vec<_> = chosen.iter().map(|it| stop_pattern(it).unwrap()).collect();
        let mut matcher = StopMatcher::new::<&str>(&[], false).with_patterns(&patterns);
        let (mut received, mut released) = (String::new(), String::new());
        for piece in text.chunks(piece_chars) {
            let piece: String = piece.iter().collect();
            let outcome = matcher.push(&piece);
            received.push_str(&piece);
            released.push_str(&outcome.text);
            if outcome.matched.is_none() {
                let held = naive_held_bytes(&received, &chosen, &completions);
                prop_assert_eq!(&released, &received[..received.len() - held], "{:?}", chosen);
            }
        }
        released.push_str(&matcher.finish());
        let (expected, index) = naive(&received, &chosen);
        prop_assert_eq!(&released, &expected, "{:?} in {}", chosen, received);
        prop_assert_eq!(matcher.matched(), index);
    }
}

#[test]
fn strings_and_expressions_compete() {
    let patterns = [stop_pattern("[a-z]+!").unwrap()];
    let mut matcher = StopMatcher::new(&["b!", "c"], true).with_patterns(&patterns);
    // Both end with the mark, and the expression is longer.
    let outcome = matcher.push("X ab!");
    assert_eq!((&*outcome.text, outcome.matched), ("X ab!", Some(2)));
    let mut matcher = StopMatcher::new(&["b!"], false).with_patterns(&patterns);
    assert_eq!(matcher.push("X b!").matched, Some(0));
}

#[test]
fn what_cannot_be_exact_or_costs_too_much_is_refused() {
    for (expression, reason) in [
        ("a*", "empty"),
        ("(", "regex parse error"),
        ("^a", "^ is not supported"),
        ("a$", "$ is not supported"),
        (r"\Aa", r"\A is not supported"),
        (r"\ba", "not supported"),
        ("(?P<stop>a)", "stop"),
        ("[a&&b]", "nothing"),
        ("(a|b)*a(a|b){12}", "states"),
        (r"\w{500}x", "states"),
        (&"a".repeat(5000), "bytes"),
    ] {
        let refused = stop_pattern(expression).unwrap_err();
        assert!(refused.contains(reason), "{expression}: {refused}");
    }
    // These are no anchors.
    for expression in [r"\^a\$", "[$^]", "[^]$]x", "[[^a]$]x"] {
        stop_pattern(expression).unwrap();
    }
}
