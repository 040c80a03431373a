//! GPT-2's printable stand-ins for bytes, in which vocabularies of byte-level BPE are written.
//! Source: `bytes_to_unicode` in `encoder.py` of openai/gpt-2.

/// The character that stands for each byte. Printable Latin-1 stands for itself; the other bytes,
/// in ascending order, get U+0100, U+0101, ...
pub const CHAR_OF_BYTE: [char; 256] = {
    let mut table = ['\0'; 256];
    let mut next: u32 = 0x100;
    let mut byte = 0;
    while byte < 256 {
        let code = if is_printable(byte as u8) {
            byte as u32
        } else {
            next += 1;
            next - 1
        };
        table[byte] = match char::from_u32(code) {
            Some(character) => character,
            None => panic!("below the surrogates"),
        };
        byte += 1;
    }
    table
};

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The byte each of U+0000..=U+0143 stands for, if any.
const BYTE_OF_CHAR: [Option<u8>; 0x144] = {
    let mut table = [None; 0x144];
    let mut byte = 0;
    while byte < 256 {
        table[CHAR_OF_BYTE[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    table
};

/// Appends the stand-ins of `bytes` to `out`.
pub fn encode(bytes: &[u8], out: &mut String) {
    out.extend(bytes.iter().map(|&byte| CHAR_OF_BYTE[usize::from(byte)]));
}

/// Appends the bytes that `text` stands for to `out`; a character that is not a stand-in gives its
/// UTF-8.
pub fn decode(text: &str, out: &mut Vec<u8>) {
    for character in text.chars() {
        match BYTE_OF_CHAR.get(character as usize) {
            Some(&Some(byte)) => out.push(byte),
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        encode(&all, &mut text);
        assert_eq!(text.chars().count(), 256);
        let mut back = Vec::new();
        decode(&text, &mut back);
        assert_eq!(back, all);
        assert_eq!(CHAR_OF_BYTE[usize::from(b' ')], 'Ġ');
        assert_eq!(CHAR_OF_BYTE[usize::from(b'\n')], 'Ċ');
        assert_eq!(CHAR_OF_BYTE[0xAD], 'Ń');
    }

    #[test]
    fn a_foreign_character_keeps_its_utf8() {
        let mut bytes = Vec::new();
        decode("Ġ▁", &mut bytes);
        assert_eq!(bytes, " ▁".as_bytes());
    }
}
