//! Stop strings and patterns over a stream of text (specification 6.2, 6.4, 10.4).

use super::stop_pattern::{PatternSearch, StopPattern};

/// Searches generated text for stops, which are strings or regular expressions, as if it arrived character by
/// character: the first stop whose last character arrives ends the text, the longer one if two end together.
///
/// Text that may be the beginning of a stop is held back: always the longest suffix that is a proper
/// prefix of some stop. The result does not depend on how the text is divided into pieces.
#[derive(Debug, Clone)]
pub struct StopMatcher {
    stops: Vec<Stop>,
    /// Their indices follow those of `stops`.
    patterns: Vec<PatternSearch>,
    include_stop: bool,
    /// Text received; the part from `released_bytes` on has not been released yet.
    buffer: String,
    released_bytes: usize,
    matched: Option<usize>,
}

/// The result of one piece of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopOutcome {
    /// Text that is released now.
    pub text: String,
    /// Index of the stop that ended the text. Nothing is released after that.
    pub matched: Option<usize>,
}

/// One stop string with its Knuth-Morris-Pratt state.
///
/// Bytes are compared: a UTF-8 string occurs in another only at character boundaries.
#[derive(Debug, Clone)]
struct Stop {
    text: Vec<u8>,
    /// `border[i]`: length of the longest proper border of `text[..=i]`.
    border: Vec<usize>,
    /// Length of the longest prefix of `text` that the text so far ends with; below the full
    /// length except at the moment of a match.
    state: usize,
}

impl StopMatcher {
    /// A matcher for `stops`; `include_stop` keeps the matched stop at the end of the text.
    /// An empty stop string never matches (the endpoint refuses it earlier).
    pub fn new<S: AsRef<str>>(stops: &[S], include_stop: bool) -> StopMatcher {
        StopMatcher {
            stops: stops.iter().map(|stop| Stop::new(stop.as_ref())).collect(),
            patterns: Vec::new(),
            include_stop,
            buffer: String::new(),
            released_bytes: 0,
            matched: None,
        }
    }

    /// The same matcher, for these patterns too. Their indices follow those of the strings.
    pub fn with_patterns(mut self, patterns: &[StopPattern]) -> StopMatcher {
        let searches = patterns.iter().cloned().map(PatternSearch::new);
        self.patterns = searches.collect();
        self
    }

    /// Takes the next piece of text. After a match further text is discarded.
    pub fn push(&mut self, text: &str) -> StopOutcome {
        if self.matched.is_some() {
            return StopOutcome {
                text: String::new(),
                matched: self.matched,
            };
        }
        for (index, byte) in text.bytes().enumerate() {
            if let Some((stop, stop_bytes)) = self.advance(byte) {
                self.matched = Some(stop);
                self.buffer.push_str(&text[..=index]);
                let end = self.buffer.len();
                let cut = if self.include_stop {
                    end
                } else {
                    end - stop_bytes
                };
                let text = self.buffer[self.released_bytes..cut].to_owned();
                self.buffer = String::new();
                self.released_bytes = 0;
                return StopOutcome {
                    text,
                    matched: Some(stop),
                };
            }
        }
        self.buffer.push_str(text);
        let begun_bytes = self.stops.iter().map(|stop| stop.state);
        let begun_bytes = begun_bytes.chain(self.patterns.iter().map(PatternSearch::begun_bytes));
        let held_bytes = begun_bytes.max().unwrap_or(0);
        let settled = self.buffer.len() - held_bytes;
        let text = self.buffer[self.released_bytes..settled].to_owned();
        self.released_bytes = settled;
        // Dropping the released part only when it is longer than the rest keeps the cost linear in
        // the length of the stream, however long a stop is.
        if self.released_bytes >= held_bytes {
            self.buffer.drain(..self.released_bytes);
            self.released_bytes = 0;
        }
        StopOutcome {
            text,
            matched: None,
        }
    }

    /// Ends the text and releases what was held back. Empty after a match.
    pub fn finish(&mut self) -> String {
        let rest = self.buffer.split_off(self.released_bytes);
        self.buffer.clear();
        self.released_bytes = 0;
        for stop in &mut self.stops {
            stop.state = 0;
        }
        self.patterns.iter_mut().for_each(PatternSearch::restart);
        rest
    }

    /// The index of the stop that ended the text, if any.
    pub fn matched(&self) -> Option<usize> {
        self.matched
    }

    /// Advances every stop by one byte. Returns the longest stop that this byte completes, the first of
    /// equal ones, with its length in bytes.
    fn advance(&mut self, byte: u8) -> Option<(usize, usize)> {
        let strings = self.stops.iter_mut().map(|stop| {
            let is_whole = stop.advance(byte);
            is_whole.then_some(stop.text.len())
        });
        let patterns = self.patterns.iter_mut().map(|search| search.advance(byte));
        let mut best: Option<(usize, usize)> = None;
        for (index, length) in strings.chain(patterns).enumerate() {
            if let Some(length) = length
                && best.is_none_or(|(_, longest)| longest < length)
            {
                best = Some((index, length));
            }
        }
        best
    }
}

impl Stop {
    fn new(text: &str) -> Stop {
        let text = text.as_bytes().to_vec();
        let mut border = vec![0; text.len()];
        let mut length = 0;
        for i in 1..text.len() {
            while length > 0 && text[i] != text[length] {
                length = border[length - 1];
            }
            if text[i] == text[length] {
                length += 1;
            }
            border[i] = length;
        }
        Stop {
            text,
            border,
            state: 0,
        }
    }

    /// Whether `byte` completes the stop.
    fn advance(&mut self, byte: u8) -> bool {
        if self.text.is_empty() {
            return false;
        }
        while self.state > 0 && self.text[self.state] != byte {
            self.state = self.border[self.state - 1];
        }
        if self.text[self.state] == byte {
            self.state += 1;
        }
        self.state == self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference implementation: looks at every prefix of the text, character by character.
    fn naive(text: &str, stops: &[String], include_stop: bool) -> (String, Option<usize>) {
        for (start, character) in text.char_indices() {
            let prefix = &text[..start + character.len_utf8()];
            let mut best: Option<usize> = None;
            for (index, stop) in stops.iter().enumerate() {
                if prefix.ends_with(stop.as_str())
                    && best.is_none_or(|b| stops[b].len() < stop.len())
                {
                    best = Some(index);
                }
            }
            if let Some(index) = best {
                let cut = if include_stop {
                    prefix.len()
                } else {
                    prefix.len() - stops[index].len()
                };
                return (prefix[..cut].to_owned(), Some(index));
            }
        }
        (text.to_owned(), None)
    }

    /// Length of the longest suffix of `text` that is a proper prefix of a stop.
    fn naive_hold_back_bytes(text: &str, stops: &[String]) -> usize {
        text.char_indices()
            .map(|(start, _)| &text[start..])
            .find(|suffix| {
                stops
                    .iter()
                    .any(|s| s.len() > suffix.len() && s.starts_with(suffix))
            })
            .map_or(0, str::len)
    }

    #[test]
    fn the_first_finished_stop_wins_and_the_longer_on_a_tie() {
        let mut matcher = StopMatcher::new(&["xyz!", "y", "xy"], false);
        assert_eq!(
            matcher.push("ax"),
            StopOutcome {
                text: "a".into(),
                matched: None
            }
        );
        assert_eq!(
            matcher.push("yz!"),
            StopOutcome {
                text: "".into(),
                matched: Some(2)
            }
        );
        assert_eq!(
            matcher.push("more"),
            StopOutcome {
                text: "".into(),
                matched: Some(2)
            }
        );
        assert_eq!(matcher.finish(), "");
        assert_eq!(matcher.matched(), Some(2));
    }

    #[test]
    fn includes_the_stop_and_nothing_after_it() {
        let mut matcher = StopMatcher::new(&["END"], true);
        assert_eq!(matcher.push("the E").text, "the ");
        assert_eq!(
            matcher.push("NDE"),
            StopOutcome {
                text: "END".into(),
                matched: Some(0)
            }
        );
    }

    #[test]
    fn releases_what_was_held_back_at_the_end() {
        let mut matcher = StopMatcher::new(&["\n\n"], false);
        assert_eq!(matcher.push("a\n").text, "a");
        assert_eq!(matcher.finish(), "\n");
    }

    #[test]
    fn a_long_stop_over_a_long_stream_stays_linear() {
        let stop = "a".repeat(200_000) + "b";
        let mut matcher = StopMatcher::new(&[stop], false);
        let mut released_bytes = 0;
        for _ in 0..400_000 {
            released_bytes += matcher.push("a").text.len();
        }
        assert_eq!(released_bytes, 200_000);
        assert_eq!(matcher.push("b").matched, Some(0));
    }

    /// Few letters and one wide character, so that overlaps are common.
    fn letters(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        let letter = prop::sample::select(vec!['a', 'b', 'é', '🦙']);
        prop::collection::vec(letter, length).prop_map(|v| v.into_iter().collect())
    }

    proptest! {
        #[test]
        fn equals_the_naive_reference_however_the_text_is_cut(
            pieces in prop::collection::vec(letters(0..5), 0..12),
            stops in prop::collection::vec(letters(1..6), 0..5),
            include_stop in any::<bool>(),
        ) {
            let text = pieces.concat();
            let (expected, expected_stop) = naive(&text, &stops, include_stop);

            let mut matcher = StopMatcher::new(&stops, include_stop);
            let mut released = String::new();
            let mut received = String::new();
            for piece in &pieces {
                let outcome = matcher.push(piece);
                received.push_str(piece);
                released.push_str(&outcome.text);
                if outcome.matched.is_none() {
                    let held = naive_hold_back_bytes(&received, &stops);
                    prop_assert_eq!(&released, &received[..received.len() - held]);
                }
            }
            released.push_str(&matcher.finish());
            prop_assert_eq!(&released, &expected);
            prop_assert_eq!(matcher.matched(), expected_stop);
        }
    }
}
