//! The tokens `<0xHH>` that stand for single bytes.

use super::token::TokenKind;

/// The id of each byte's token.
#[derive(Debug, Clone)]
pub struct ByteFallback {
    ids: Box<[u32; 256]>,
}

impl ByteFallback {
    /// The byte tokens of a vocabulary; `None` unless it has all 256.
    pub fn complete(strings: &[String], kinds: &[TokenKind]) -> Option<ByteFallback> {
        let mut ids = Box::new([None; 256]);
        for ((text, kind), id) in strings.iter().zip(kinds).zip(0u32..) {
            if *kind == TokenKind::Byte
                && let Some(byte) = byte_of(text)
            {
                ids[usize::from(byte)].get_or_insert(id);
            }
        }
        let mut found = Box::new([0; 256]);
        for (id, found) in ids.iter().zip(found.iter_mut()) {
            *found = (*id)?;
        }
        Some(ByteFallback { ids: found })
    }

    /// The id of the token of `byte`.
    pub fn id(&self, byte: u8) -> u32 {
        self.ids[usize::from(byte)]
    }
}

/// The byte that a text written `<0xHH>` stands for.
pub fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}
