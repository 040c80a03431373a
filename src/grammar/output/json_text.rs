//! JSON text, character by character: the end of a value, the content of a string.

/// Finds the end of a JSON value without checking it: brackets are counted, strings are skipped.
#[derive(Debug, Default)]
pub(super) struct ValueEnd {
    depth: usize,
    is_scalar: bool,
    is_string: bool,
    is_escaped: bool,
}

/// The place of a character in relation to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Inside,
    /// The character is the last one of the value.
    Last,
    /// The character follows the value.
    After,
}

impl ValueEnd {
    pub(super) fn feed(&mut self, character: char) -> Place {
        if self.is_string {
            let ends = character == '"' && !self.is_escaped;
            self.is_escaped = character == '\\' && !self.is_escaped;
            self.is_string = !ends;
            return match ends && self.depth == 0 {
                true => Place::Last,
                false => Place::Inside,
            };
        }
        if self.depth == 0 && self.is_scalar && (",}]:".contains(character) || is_space(character))
        {
            return Place::After;
        }
        match character {
            '"' => self.is_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Place::Last;
                }
            }
            _ if self.depth == 0 => self.is_scalar = true,
            _ => {}
        }
        Place::Inside
    }
}

/// White space of JSON.
pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\n' | '\r' | '\t')
}

/// Decodes the contents of a JSON string. Escapes that are wrong stay as they are.
#[derive(Debug, Default)]
pub(super) struct Unescape {
    /// The escape so far, with its backslash.
    escape: String,
    /// The first half of a pair of surrogates.
    high: Option<u32>,
}

impl Unescape {
    pub(super) fn feed(&mut self, character: char, out: &mut String) {
        if self.escape.is_empty() {
            if character == '\\' {
                self.escape.push('\\');
            } else {
                self.close(out);
                out.push(character);
            }
            return;
        }
        self.escape.push(character);
        let code = match character {
            _ if self.escape.len() > 2 => {
                let is_hex = character.is_ascii_hexdigit();
                if is_hex && self.escape.len() < 6 {
                    return;
                }
                let code = u32::from_str_radix(&self.escape[2..], 16).ok();
                code.filter(|_| is_hex)
            }
            'u' => return,
            'n' => Some(0x0A),
            't' => Some(0x09),
            'r' => Some(0x0D),
            'b' => Some(0x08),
            'f' => Some(0x0C),
            '"' | '\\' | '/' => Some(character as u32),
            _ => None,
        };
        let escape = std::mem::take(&mut self.escape);
        match (code, self.high) {
            (None, _) => {
                self.close(out);
                out.push_str(&escape);
            }
            (Some(low @ 0xDC00..0xE000), Some(high)) => {
                self.high = None;
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                out.extend(char::from_u32(code));
            }
            (Some(high @ 0xD800..0xDC00), _) => {
                self.close(out);
                self.high = Some(high);
            }
            (Some(code), _) => {
                self.close(out);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }

    /// A character of a Python string in `quote`; true for the one that ends it.
    pub(super) fn feed_python(&mut self, character: char, quote: char, out: &mut String) -> bool {
        if self.escape.is_empty() && character == quote {
            self.close(out);
            return true;
        }
        if self.escape == "\\" && character == '\'' {
            self.escape.clear();
            self.close(out);
            out.push('\'');
        } else {
            self.feed(character, out);
        }
        false
    }

    /// Half a pair is no character.
    fn close(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    pub(super) fn finish(&mut self, out: &mut String) {
        self.close(out);
        out.push_str(&std::mem::take(&mut self.escape));
    }
}

/// The start of an object's member, before its value. Members after the first follow a comma.
pub(super) fn member_start(name: &str, is_first: bool) -> String {
    let mut out = String::from(if is_first { "\"" } else { ", \"" });
    name.chars().for_each(|c| push_escaped(c, &mut out));
    out.push_str("\": ");
    out
}

/// `text` as the contents of a JSON string.
pub(super) fn push_escaped(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\x1f' => {
            let code = character as u32;
            out.push_str(&format!("\\u{code:04x}"));
        }
        _ => out.push(character),
    }
}
