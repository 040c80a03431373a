//! Splits text into the pieces that are tokenized one by one.

use std::ops::{ControlFlow, Range};

use tokenizers::utils::SysRegex;

use crate::{Error, Result};

/// The treatment of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// The match is a piece.
    Isolated,
    /// The match is dropped.
    Removed,
    /// The match is the end of the piece before it.
    MergedWithPrevious,
    /// The match is the beginning of the piece after it.
    MergedWithNext,
    /// Adjacent matches are one piece.
    Contiguous,
}

/// Cuts that are applied one after the other, each to every piece that the previous ones left.
#[derive(Debug, Default)]
pub struct Splitter {
    cuts: Vec<Cut>,
}

#[derive(Debug)]
struct Cut {
    finder: Finder,
    behavior: Behavior,
    /// Whether no match depends on the text before it.
    is_blind: bool,
    /// Whether the text between matches counts as matched, and the matches do not.
    invert: bool,
}

#[derive(Debug)]
enum Finder {
    Regex(SysRegex),
    /// Runs of digits, each split into threes counted from its end. The patterns for this look ahead over
    /// the rest of the run at every digit, which takes quadratic time.
    Thousands {
        runs: SysRegex,
        /// Whether the pattern matches the empty text before each three, not the digits.
        before: bool,
        /// A pattern that must not follow a run, if there is one.
        not_followed_by: Option<SysRegex>,
    },
}

/// Patterns of digits in threes from the right, the runs that they split, and whether they match the
/// empty text before the threes.
const THOUSANDS: [(&str, &str, bool); 3] = [
    (r"\d{1,3}(?=(?:\d{3})*\b)", r"\d+", false),
    (r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", r"\p{N}+", false),
    (r"(?=(\d{3})+(?!\d))", r"\d+", true),
];

/// The characters that `\b` separates from others. The regex library of the reference, Oniguruma, counts
/// the fractions and superscript digits of Latin-1 as word characters; ours does not.
const WORD_CHARACTER: &str = r"\A[\w²³¹¼½¾]";

impl Splitter {
    /// Adds a cut at the matches of `pattern`.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for a pattern that the regex library does not accept.
    pub fn cut(&mut self, pattern: &str, behavior: Behavior, invert: bool) -> Result<()> {
        let regex = |pattern: &str| {
            SysRegex::new(pattern).map_err(|_| {
                let shown: String = pattern.chars().take(80).collect();
                Error::UnsupportedModel(format!("pre-tokenizer pattern {shown:?}"))
            })
        };
        let thousands = THOUSANDS.iter().find(|known| known.0 == pattern);
        let finder = match thousands {
            Some(&(_, runs, before)) => Finder::Thousands {
                runs: regex(runs)?,
                before,
                not_followed_by: match pattern.contains(r"\b") {
                    true => Some(regex(WORD_CHARACTER)?),
                    false => None,
                },
            },
            None => Finder::Regex(regex(pattern)?),
        };
        self.cuts.push(Cut {
            is_blind: matches!(finder, Finder::Thousands { .. }) || is_blind(pattern),
            finder,
            behavior,
            invert,
        });
        Ok(())
    }

    /// Whether some text can be in no piece.
    pub fn drops_text(&self) -> bool {
        let mut behaviors = self.cuts.iter().map(|cut| cut.behavior);
        behaviors.any(|behavior| behavior == Behavior::Removed)
    }

    /// Calls `piece` with each piece in order. No piece is empty; joined they are `text` without what is
    /// removed.
    ///
    /// # Errors
    /// The first error of `piece`.
    pub fn split<'t>(
        &self,
        text: &'t str,
        piece: &mut dyn FnMut(&'t str) -> Result<()>,
    ) -> Result<()> {
        split_with(&self.cuts, text, piece)
    }

    /// Whether there is nothing to split at.
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// [`Self::split`] up to the first place from `least_bytes` on where the rest can be split on its own. Returns
    /// this place.
    ///
    /// # Errors
    /// The first error of `piece`.
    pub fn split_first<'t>(
        &self,
        text: &'t str,
        least_bytes: usize,
        piece: &mut dyn FnMut(&'t str) -> Result<()>,
    ) -> Result<usize> {
        let can_pause = |first: &Cut| first.is_blind && first.behavior == Behavior::Isolated;
        let Some((first, rest)) = self.cuts.split_first().filter(|cuts| can_pause(cuts.0)) else {
            self.split(text, piece)?;
            return Ok(text.len());
        };
        let mut done_bytes = 0;
        let stopped = first.parts(text, &mut |part, _| {
            done_bytes = part.end;
            match split_with(rest, &text[part], piece) {
                Ok(()) if done_bytes < least_bytes => ControlFlow::Continue(()),
                end => ControlFlow::Break(end),
            }
        });
        stopped.break_value().unwrap_or(Ok(()))?;
        Ok(done_bytes)
    }
}

/// Whether `pattern` neither looks behind nor names the beginning of the text.
fn is_blind(pattern: &str) -> bool {
    let looks_behind = ["(?<", r"\b", r"\B", r"\A", r"\G", r"\K"];
    let names_begin = pattern
        .match_indices('^')
        .any(|(at, _)| !pattern[..at].ends_with('['));
    !names_begin && !looks_behind.iter().any(|it| pattern.contains(it))
}

fn split_with<'t>(
    cuts: &[Cut],
    text: &'t str,
    piece: &mut dyn FnMut(&'t str) -> Result<()>,
) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let Some((first, rest)) = cuts.split_first() else {
        return piece(text);
    };
    if first.behavior == Behavior::Isolated {
        let stopped = first.parts(
            text,
            &mut |part, _| match split_with(rest, &text[part], piece) {
                Ok(()) => ControlFlow::Continue(()),
                error => ControlFlow::Break(error),
            },
        );
        return stopped.break_value().unwrap_or(Ok(()));
    }
    let mut parts = Vec::new();
    let _ = first.parts(text, &mut |part, matched| {
        parts.push((part, matched));
        ControlFlow::Continue(())
    });
    for part in first.behavior.arrange(parts) {
        split_with(rest, &text[part], piece)?;
    }
    Ok(())
}

impl Cut {
    /// Calls `visit` with the matches and the parts between them, in order, until it breaks; none is empty.
    fn parts(
        &self,
        text: &str,
        visit: &mut dyn FnMut(Range<usize>, bool) -> ControlFlow<Result<()>>,
    ) -> ControlFlow<Result<()>> {
        let mut done = 0;
        let mut found = |start: usize, end: usize| {
            if done < start {
                visit(done..start, self.invert)?;
            }
            if start < end {
                visit(start..end, !self.invert)?;
            }
            done = end;
            ControlFlow::Continue(())
        };
        match &self.finder {
            Finder::Regex(regex) => {
                for (start, end) in regex.find_iter(text) {
                    found(start, end)?;
                }
            }
            Finder::Thousands {
                runs,
                before,
                not_followed_by,
            } => {
                for (start, end) in runs.find_iter(text) {
                    let is_bad_end =
                        |regex: &SysRegex| regex.find_iter(&text[end..]).next().is_some();
                    if not_followed_by.as_ref().is_some_and(is_bad_end) {
                        continue;
                    }
                    let count = text[start..end].chars().count();
                    let mut threes = text[start..end]
                        .char_indices()
                        .enumerate()
                        .filter(|(index, _)| (count - index).is_multiple_of(3))
                        .map(|(_, (at, _))| start + at)
                        .peekable();
                    if !before {
                        found(start, threes.peek().copied().unwrap_or(end))?;
                    }
                    while let Some(at) = threes.next() {
                        let next = threes.peek().copied().unwrap_or(end);
                        found(at, if *before { at } else { next })?;
                    }
                }
            }
        }
        found(text.len(), text.len())
    }
}

impl Behavior {
    /// The pieces that parts become.
    fn arrange(self, parts: Vec<(Range<usize>, bool)>) -> Vec<Range<usize>> {
        let mut pieces: Vec<Range<usize>> = Vec::with_capacity(parts.len());
        let mut previous_matched = false;
        let backwards = self == Behavior::MergedWithNext;
        let mut arrange = |(part, matched): (Range<usize>, bool)| {
            let joins = match self {
                Behavior::Isolated => false,
                Behavior::Removed if matched => return,
                Behavior::Removed => false,
                Behavior::Contiguous => matched == previous_matched,
                // A match after a match stands alone.
                Behavior::MergedWithPrevious | Behavior::MergedWithNext => {
                    matched && !previous_matched
                }
            };
            previous_matched = matched;
            match pieces.last_mut() {
                Some(last) if joins => *last = part.start.min(last.start)..part.end.max(last.end),
                _ => pieces.push(part),
            }
        };
        if backwards {
            parts.into_iter().rev().for_each(arrange);
            pieces.reverse();
        } else {
            parts.into_iter().for_each(&mut arrange);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces<'t>(cuts: &[(&str, Behavior, bool)], text: &'t str) -> Vec<&'t str> {
        let mut splitter = Splitter::default();
        for (pattern, behavior, invert) in cuts {
            splitter.cut(pattern, *behavior, *invert).unwrap();
        }
        let mut pieces = Vec::new();
        let mut keep = |piece| {
            pieces.push(piece);
            Ok(())
        };
        splitter.split(text, &mut keep).unwrap();
        pieces
    }

    /// The examples of the `tokenizers` documentation of `SplitDelimiterBehavior`.
    #[test]
    fn matches_end_up_where_the_behavior_says() {
        let cut = |behavior| pieces(&[("-", behavior, false)], "the-final--countdown");
        assert_eq!(cut(Behavior::Removed), ["the", "final", "countdown"]);
        assert_eq!(
            cut(Behavior::Isolated),
            ["the", "-", "final", "-", "-", "countdown"]
        );
        assert_eq!(
            cut(Behavior::MergedWithPrevious),
            ["the-", "final-", "-", "countdown"]
        );
        assert_eq!(
            cut(Behavior::MergedWithNext),
            ["the", "-final", "-", "-countdown"]
        );
        assert_eq!(
            cut(Behavior::Contiguous),
            ["the", "-", "final", "--", "countdown"]
        );
    }

    #[test]
    fn an_inverted_cut_acts_on_what_does_not_match() {
        let cuts = [(r"\w+", Behavior::Removed, true)];
        assert_eq!(pieces(&cuts, "a, b; c"), ["a", "b", "c"]);
        assert!(pieces(&cuts, ", ").is_empty() && pieces(&[], "").is_empty());
    }

    #[test]
    fn digits_in_threes_are_counted_from_the_right() {
        let isolated = |pattern, text| pieces(&[(pattern, Behavior::Isolated, false)], text);
        let before_a_word_end = r"\d{1,3}(?=(?:\d{3})*\b)";
        assert_eq!(
            isolated(before_a_word_end, "a 1234567, 12x 12½ 123③"),
            ["a ", "1", "234", "567", ", 12x 12½ ", "123", "③"]
        );
        let between = r"(?=(\d{3})+(?!\d))";
        assert_eq!(isolated(between, "x1234 y12"), ["x1", "234 y12"]);
        assert_eq!(isolated(between, "x123456"), ["x", "123", "456"]);
    }

    #[test]
    fn an_invalid_pattern_is_refused_by_name() {
        let error = Splitter::default().cut("(", Behavior::Isolated, false);
        let Err(Error::UnsupportedModel(message)) = error else {
            panic!("{error:?}");
        };
        assert!(message.contains("\"(\""), "{message}");
    }
}
