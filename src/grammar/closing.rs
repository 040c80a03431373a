//! Closes the array or object whose parts repeat. `guard` decides when that begins.

/// A position in a text of JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Between the quotes of a string.
    pub(super) in_string: bool,
    /// Whether the last character was a backslash that escapes the next one.
    is_escaped: bool,
    /// Open arrays and objects, relative to where counting began.
    depth: i32,
}

impl Place {
    /// The position inside of a string.
    pub(super) const IN_STRING: Place = Place {
        in_string: true,
        is_escaped: false,
        depth: 0,
    };

    /// Moves over a byte. False for one that JSON does not have here.
    pub(super) fn step(&mut self, byte: u8) -> bool {
        if self.in_string {
            let escaped = std::mem::replace(&mut self.is_escaped, false);
            match byte {
                _ if escaped => {}
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return byte >= 0x20;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth -= 1,
            _ => {}
        }
        byte.is_ascii_whitespace() || b"\"[]{},:+-.0123456789Eaeflnrstu".contains(&byte)
    }

    /// Whether `text` from here has a comma outside of strings: it begins another element or member.
    pub(super) fn meets_comma(mut self, text: &[u8]) -> bool {
        text.iter().any(|byte| {
            let is_comma = *byte == b',' && !self.in_string;
            self.step(*byte);
            is_comma
        })
    }
}

/// An array or object that is to be closed.
#[derive(Debug, Clone)]
pub(super) struct Closing {
    /// The place in the text. Below a depth of 0 the text is closed.
    place: Place,
}

impl Closing {
    /// The container of the elements or members that `repeated` consists of, if it ends outside of a string.
    /// `in_string` is what seems to hold at its end, for text that is possible in a string and outside.
    pub(super) fn begin(repeated: &[u8], in_string: bool) -> Option<Closing> {
        let outside = ending(Place::default(), repeated).filter(|place| !place.in_string);
        let inside = ending(Place::IN_STRING, repeated);
        match inside {
            Some(inside) if !inside.in_string => match outside {
                // The end may be inside of a string or outside of one.
                Some(_) => None,
                None => Some(Closing { place: inside }),
            },
            Some(_) if in_string => None,
            _ => outside.map(|place| Closing { place }),
        }
    }

    /// A container with `within` open ones around the end, which is outside of strings.
    pub(super) fn around(within: usize) -> Closing {
        let place = Place {
            depth: within as i32,
            ..Place::default()
        };
        Closing { place }
    }

    /// Moves over a token. True once the container is closed.
    pub(super) fn is_closed_by(&mut self, text: &[u8]) -> bool {
        text.iter().any(|byte| {
            self.place.step(*byte);
            self.place.depth < 0
        })
    }

    pub(super) fn in_string(&self) -> bool {
        self.place.in_string
    }
}

/// The place after `text`, which begins at `place`, with the depth above its lowest one. `None` if it is no part of JSON there.
fn ending(mut place: Place, text: &[u8]) -> Option<Place> {
    let mut lowest = 0;
    for byte in text {
        if !place.step(*byte) {
            return None;
        }
        lowest = lowest.min(place.depth);
    }
    place.depth -= lowest;
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_repeated_parts_are_found_and_closed() {
        let mut objects = Closing::begin(br#"{"a":1},{"a":1},"#, false).unwrap();
        assert!(!objects.is_closed_by(br#"{"a":2}"#));
        assert!(objects.is_closed_by(b"]"));
        // Strings whose first quote is not in the text.
        let mut strings = Closing::begin(br#"red", "red", ""#, true);
        assert!(strings.is_none(), "it ends in a string");
        strings = Closing::begin(br#"red", "red", "#, true);
        let mut strings = strings.unwrap();
        assert!(!strings.is_closed_by(br#""]}""#));
        assert!(strings.is_closed_by(b"]"));
        let mut nested = Closing::begin(b"[[[[", false).unwrap();
        assert!(!nested.is_closed_by(b"]]]]"));
        assert!(nested.is_closed_by(b"]"));
    }

    #[test]
    fn repeated_text_of_a_string_has_no_container() {
        assert!(Closing::begin(b"ab ab ab ", true).is_none());
        assert!(Closing::begin(b"ab ab ab ", false).is_none());
        assert!(Closing::begin(b"0, 0, ", true).is_none());
        assert!(Closing::begin(b"0, 0, ", false).is_some());
    }

    #[test]
    fn commas_of_strings_begin_no_element() {
        assert!(Place::default().meets_comma(b"},"));
        assert!(!Place::default().meets_comma(br#""a,b""#));
        assert!(Place::IN_STRING.meets_comma(br#"", ""#));
        assert!(!Place::IN_STRING.meets_comma(br#"a, b"#));
        assert!(!Place::IN_STRING.meets_comma(br#"\","#));
    }
}
