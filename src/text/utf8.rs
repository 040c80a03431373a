//! Decodes UTF-8 that arrives in arbitrary pieces into whole characters.

/// Decodes a stream of byte pieces by the WHATWG rule ("maximal subpart": each longest prefix of a valid
/// sequence that cannot be continued becomes one U+FFFD). The result is that of
/// [`String::from_utf8_lossy`] for the joined pieces.
///
/// Only whole characters are released: a sequence that later bytes may complete is held back.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    /// The start of an unfinished sequence: always a proper prefix of a valid one, so at most 3.
    tail: Vec<u8>,
}

impl Utf8Stream {
    /// Takes the next bytes and appends the characters they complete to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        if self.tail.is_empty() {
            self.decode(bytes, out);
        } else {
            let mut joined = std::mem::take(&mut self.tail);
            joined.extend_from_slice(bytes);
            self.decode(&joined, out);
        }
    }

    /// Ends the stream: an unfinished tail becomes one U+FFFD.
    pub fn finish(&mut self, out: &mut String) {
        if !self.tail.is_empty() {
            self.tail.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Whether `byte` continues or completes the unfinished character. False if there is none.
    pub fn continues(&self, byte: u8) -> bool {
        if self.tail.is_empty() {
            return false;
        }
        let mut joined = self.tail.clone();
        joined.push(byte);
        // The byte makes the sequence valid, or leaves it the start of a valid one.
        std::str::from_utf8(&joined).map_or_else(|error| error.error_len().is_none(), |_| true)
    }

    /// Bytes of an unfinished character that are held back.
    pub fn pending_bytes(&self) -> usize {
        self.tail.len()
    }

    fn decode(&mut self, mut bytes: &[u8], out: &mut String) {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => {
                    out.push_str(text);
                    return;
                }
                Err(error) => {
                    let (valid, rest) = bytes.split_at(error.valid_up_to());
                    // from_utf8 has just validated it; lossy decoding of valid text copies it.
                    out.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(bad) => {
                            out.push(char::REPLACEMENT_CHARACTER);
                            bytes = &rest[bad..];
                        }
                        // The input ends inside a sequence that is valid so far.
                        None => {
                            self.tail = rest.to_vec();
                            return;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_in_pieces(pieces: &[Vec<u8>]) -> String {
        let mut stream = Utf8Stream::default();
        let mut out = String::new();
        for piece in pieces {
            stream.push(piece, &mut out);
            assert!(stream.pending_bytes() <= 3);
        }
        stream.finish(&mut out);
        assert_eq!(stream.pending_bytes(), 0);
        out
    }

    #[test]
    fn holds_back_part_of_a_character() {
        let mut stream = Utf8Stream::default();
        let mut out = String::new();
        stream.push(&[0xF0, 0x9F, 0x98], &mut out);
        assert_eq!(out, "");
        stream.push(&[0x80, b'!'], &mut out);
        assert_eq!(out, "😀!");
    }

    #[test]
    fn tells_whether_a_byte_continues_a_character() {
        let mut stream = Utf8Stream::default();
        let mut out = String::new();
        assert!(!stream.continues(0x80) && !stream.continues(b'a'));
        stream.push(&[0xF0, 0x9F], &mut out);
        assert!(stream.continues(0x98));
        assert!(!stream.continues(b'a') && !stream.continues(0xF0));
        stream.push(&[0x98], &mut out);
        assert!(stream.continues(0x80));
        stream.push(&[0x80], &mut out);
        assert!(!stream.continues(0x80));
    }

    #[test]
    fn an_unfinished_tail_is_one_replacement_character() {
        assert_eq!(
            decode_in_pieces(&[vec![b'a', 0xF0, 0x9F, 0x98]]),
            "a\u{FFFD}"
        );
        // A surrogate is not a prefix of a valid sequence: one replacement per byte.
        assert_eq!(
            decode_in_pieces(&[vec![0xED, 0xA0, 0x80]]),
            "\u{FFFD}\u{FFFD}\u{FFFD}"
        );
    }

    /// Bytes that often form interesting cases: leads, continuations, surrogates, text.
    fn awkward_byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            0x80u8..=0xBF,
            0xC0u8..=0xFF,
            prop::sample::select(vec![
                0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0x80, 0xED, 0xA0, b'a'
            ]),
        ]
    }

    proptest! {
        #[test]
        fn equals_lossy_decoding_of_the_whole(
            pieces in prop::collection::vec(prop::collection::vec(awkward_byte(), 0..6), 0..20)
        ) {
            let joined = pieces.concat();
            prop_assert_eq!(decode_in_pieces(&pieces), String::from_utf8_lossy(&joined));
        }
    }
}
