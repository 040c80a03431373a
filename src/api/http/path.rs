//! Paths of URLs.

/// The path of a URL without origin, query and fragment.
pub(in crate::api) fn path_of(url: &str) -> &str {
    let path = match url.split_once("://") {
        // A "://" after a slash belongs to the query, not to an origin.
        Some((scheme, rest)) if !scheme.contains(['/', '?', '#']) => {
            rest.find(['/', '?', '#']).map_or("", |at| &rest[at..])
        }
        _ => url,
    };
    let end = path.find(['?', '#']).unwrap_or(path.len());
    &path[..end]
}

/// Decodes `%XX` once; malformed escapes stay as they are, bytes that are not UTF-8 become U+FFFD.
pub(in crate::api) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |offset: usize| {
            let byte = bytes.get(at + offset)?;
            (*byte as char).to_digit(16)
        };
        match (bytes[at], digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
