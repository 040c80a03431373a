//! A regular expression that ends a text, as an automaton over bytes, and the search for it in a stream of text. `grammar`
//! makes the automaton; `stop` decides what ends the text.

use std::rc::Rc;

/// The state from which no text matches.
pub const DEAD: u16 = 0;

/// A regular expression as a deterministic automaton. It matches no empty text. Cheap to clone.
#[derive(Clone)]
pub struct StopPattern(Rc<Automaton>);

/// The automaton of a [`StopPattern`]. From every state but [`DEAD`] some text matches.
pub struct Automaton {
    /// The regular expression.
    pub expression: String,
    /// The class of each byte. The automaton does not distinguish the bytes of a class.
    pub class_of: [u8; 256],
    /// The number of classes, at least one.
    pub classes: usize,
    /// The state before any byte.
    pub start: u16,
    /// The next state, by state and class.
    pub next: Vec<u16>,
    /// Whether the bytes so far match, by state.
    pub is_match: Vec<bool>,
}

impl StopPattern {
    /// The pattern with this automaton.
    pub fn new(automaton: Automaton) -> StopPattern {
        StopPattern(Rc::new(automaton))
    }

    /// The regular expression.
    pub fn expression(&self) -> &str {
        &self.0.expression
    }

    fn next(&self, state: u16, byte: u8) -> u16 {
        let class = usize::from(self.0.class_of[usize::from(byte)]);
        self.0.next[usize::from(state) * self.0.classes + class]
    }
}

impl PartialEq for StopPattern {
    fn eq(&self, other: &StopPattern) -> bool {
        self.expression() == other.expression()
    }
}

impl std::fmt::Debug for StopPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("StopPattern")
            .field(&self.expression())
            .finish()
    }
}

/// The search for a pattern in a text that arrives byte by byte.
#[derive(Debug, Clone)]
pub(super) struct PatternSearch {
    pattern: StopPattern,
    /// The matches that may still become whole: each state with the earliest start that leads to it, in the order of the
    /// starts. So there are at most as many as the automaton has states.
    begun: Vec<Begun>,
    /// The number of the byte at which each state was last entered.
    entered: Vec<usize>,
    /// Bytes so far.
    bytes: usize,
}

/// The beginning of a match.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// Bytes of the text before it.
    start: usize,
    state: u16,
}

impl PatternSearch {
    pub(super) fn new(pattern: StopPattern) -> PatternSearch {
        PatternSearch {
            entered: vec![0; pattern.0.is_match.len()],
            pattern,
            begun: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes the next byte. Returns the length in bytes of the longest match that ends with it.
    pub(super) fn advance(&mut self, byte: u8) -> Option<usize> {
        let is_first_of_character = byte & 0xC0 != 0x80;
        if is_first_of_character {
            self.begun.push(Begun {
                start: self.bytes,
                state: self.pattern.0.start,
            });
        }
        self.bytes += 1;
        let PatternSearch {
            pattern,
            begun,
            entered,
            bytes,
        } = self;
        begun.retain_mut(|it| {
            it.state = pattern.next(it.state, byte);
            let entered = &mut entered[usize::from(it.state)];
            it.state != DEAD && std::mem::replace(entered, *bytes) != *bytes
        });
        let is_whole = |it: &&Begun| pattern.0.is_match[usize::from(it.state)];
        let whole = begun.iter().find(is_whole)?;
        Some(*bytes - whole.start)
    }

    /// The length in bytes of the longest beginning of a match that the text so far ends with.
    pub(super) fn begun_bytes(&self) -> usize {
        self.begun.first().map_or(0, |it| self.bytes - it.start)
    }

    /// Forgets the text so far.
    pub(super) fn restart(&mut self) {
        self.begun.clear();
    }
}
