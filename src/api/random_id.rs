//! Random ids of requests and answers. They are not secrets.

const ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Lower-case letters and digits: the first 36 of [`ALPHABET`].
const LOWER: usize = 36;
const RANDOM_CHARS: usize = 24;

/// `req_` and 24 of `[a-z0-9]`.
pub(super) fn request_id() -> String {
    random_id("req_", LOWER)
}

/// `prefix` and 24 of `[A-Za-z0-9]`: the id of an answer.
pub(super) fn answer_id(prefix: &str) -> String {
    random_id(prefix, ALPHABET.len())
}

/// `call_` and 24 of `[A-Za-z0-9]`.
pub(super) fn tool_call_id() -> String {
    answer_id("call_")
}

fn random_id(prefix: &str, alphabet_len: usize) -> String {
    let mut id = prefix.to_owned();
    // Two bytes per character make the bias of the remainder negligible. If the system has no
    // randomness, the id is all "a", which is still valid.
    let mut bytes = [0_u8; 2 * RANDOM_CHARS];
    let _ = getrandom_04::fill(&mut bytes);
    for pair in bytes.as_chunks::<2>().0 {
        let index = usize::from(u16::from_le_bytes(*pair)) % alphabet_len;
        id.push(char::from(ALPHABET[index]));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_documented_form_and_differ() {
        let id = request_id();
        let random = id.strip_prefix("req_").unwrap();
        assert_eq!(random.len(), 24);
        assert!(
            random
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        );
        assert_ne!(id, request_id());
        let id = answer_id("cmpl-");
        let random = id.strip_prefix("cmpl-").unwrap();
        assert!(random.len() == 24 && random.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_ne!(id, answer_id("cmpl-"));
        assert_eq!(tool_call_id().len(), "call_".len() + 24);
        assert_ne!(tool_call_id(), tool_call_id());
    }
}
