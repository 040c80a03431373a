//! Unrolls marked loops of WGSL. The compilers of software adapters do not unroll, so an array that is
//! indexed by a variable is in memory there instead of registers. Only one form of loop is supported:
//! `for (var i = 0u; i < 8u; i++) { // unrolled`, whose bound may be a named constant.

const MARK: &str = "{ // unrolled\n";

/// Replaces every marked loop by its iterations, the loop's variable by its values. `constant` gives
/// the value of a named bound.
///
/// # Panics
/// If a marked line has another form, a bound is unknown or braces are unbalanced: mistakes in our
/// shaders.
pub(super) fn unroll(wgsl: &str, constant: &impl Fn(&str) -> Option<u32>) -> String {
    let Some(mark) = wgsl.find(MARK) else {
        return wgsl.to_owned();
    };
    let start = wgsl[..mark].rfind('\n').map_or(0, |at| at + 1);
    let head = wgsl[start..mark].trim();
    let (variable, bound) = parse(head).unwrap_or_else(|| panic!("cannot be unrolled: {head}"));
    let count = match bound.strip_suffix('u').and_then(|n| n.parse().ok()) {
        Some(literal) => literal,
        None => constant(bound).unwrap_or_else(|| panic!("no constant {bound}")),
    };
    let after_mark = mark + MARK.len();
    let end = after_mark + closing_brace(&wgsl[after_mark..]);
    let body = unroll(&wgsl[after_mark..end], constant);
    let mut text = wgsl[..start].to_owned();
    for i in 0..count {
        text.push_str("{\n");
        text.push_str(&replace_word(&body, variable, &format!("{i}u")));
        text.push_str("}\n");
    }
    text.push_str(&unroll(&wgsl[end + 1..], constant));
    text
}

/// Variable and bound of `for (var i = 0u; i < 8u; i++)`.
fn parse(head: &str) -> Option<(&str, &str)> {
    let (variable, rest) = head.strip_prefix("for (var ")?.split_once(" = 0u; ")?;
    let (condition, step) = rest.split_once("; ")?;
    let (again, bound) = condition.split_once(" < ")?;
    let steps = step.strip_suffix("++)")?;
    (again == variable && steps == variable).then_some((variable, bound))
}

/// The position of the brace that closes the block around `text`.
fn closing_brace(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    panic!("a loop to be unrolled has no end")
}

/// `text` with each word `word` replaced.
pub(super) fn replace_word(text: &str, word: &str, with: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_word = !before.ends_with(is_part)
            && !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        replaced.push_str(before);
        replaced.push_str(if is_word { with } else { word });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::unroll;

    fn unrolled(wgsl: &str) -> String {
        let text = unroll(wgsl, &|name| (name == "N").then_some(2));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn iterations_follow_each_other() {
        let wgsl = "a\nfor (var i = 0u; i < 3u; i++) { // unrolled\n  x[i] = i_2 + q.i;\n}\nb";
        assert_eq!(
            unrolled(wgsl),
            "a { x[0u] = i_2 + q.i; } { x[1u] = i_2 + q.i; } { x[2u] = i_2 + q.i; } b"
        );
    }

    #[test]
    fn loops_nest_and_bounds_have_names() {
        let wgsl = "for (var r = 0u; r < N; r++) { // unrolled\nif (c) {\n\
                    for (var i = 0u; i < N; i++) { // unrolled\ny[r][i];\n}\n}\n}\n";
        assert_eq!(
            unrolled(wgsl),
            "{ if (c) { { y[0u][0u]; } { y[0u][1u]; } } } \
             { if (c) { { y[1u][0u]; } { y[1u][1u]; } } }"
        );
    }

    #[test]
    fn unmarked_loops_are_unchanged() {
        let wgsl = "for (var i = 0u; i < 3u; i++) {\nx[i];\n}\n";
        assert_eq!(unroll(wgsl, &|_| None), wgsl);
    }

    #[test]
    #[should_panic(expected = "cannot be unrolled")]
    fn a_mark_in_the_wrong_place_panics() {
        unroll("while (true) { // unrolled\n}\n", &|_| None);
    }
}
