//! Which resource a URL names (specification 1.2). Knows nothing of methods' meaning or of models.

/// A resource under one of the base paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `{base}/completions`
    Completions,
    /// `{base}/models`
    Models,
    /// `{base}/models/{id}`, decoded.
    Model(String),
}

impl Route {
    /// The resource at `url` (`/path?query` or absolute), if there is one.
    pub(super) fn parse(url: &str, base_paths: &[String]) -> Option<Route> {
        let path = path_of(url);
        let path = path.strip_suffix('/').unwrap_or(path);
        base_paths.iter().find_map(|base| {
            let base = base.trim_end_matches('/');
            match path.strip_prefix(base)?.strip_prefix('/')? {
                "completions" => Some(Route::Completions),
                "models" => Some(Route::Models),
                other => match other.strip_prefix("models/") {
                    Some("") | None => None,
                    Some(id) => Some(Route::Model(percent_decode(id))),
                },
            }
        })
    }

    /// The methods it answers, as the `Allow` header lists them.
    pub(super) fn allow(&self) -> &'static str {
        match self {
            Route::Completions => "POST, OPTIONS",
            Route::Models | Route::Model(_) => "GET, OPTIONS",
        }
    }

    /// The one method besides `OPTIONS`.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Route::Completions => "POST",
            Route::Models | Route::Model(_) => "GET",
        }
    }
}

/// The path of a URL without origin, query and fragment.
fn path_of(url: &str) -> &str {
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
fn percent_decode(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Option<Route> {
        Route::parse(url, &["/v1".into(), "/openai/v1/".into()])
    }

    #[test]
    fn known_paths() {
        for url in [
            "/v1/completions",
            "/v1/completions/",
            "/v1/completions/?trace=1",
            "/openai/v1/completions#x",
            "https://page.example:8080/v1/completions?u=http://a/b",
        ] {
            assert_eq!(parse(url), Some(Route::Completions), "{url}");
        }
        assert_eq!(parse("/v1/models"), Some(Route::Models));
        assert_eq!(parse("/v1/models/"), Some(Route::Models));
        for url in ["/v1/models/org%2Fname", "/v1/models/org/name"] {
            assert_eq!(parse(url), Some(Route::Model("org/name".into())), "{url}");
        }
    }

    #[test]
    fn ids_are_decoded_once() {
        assert_eq!(
            parse("/v1/models/a%252Fb"),
            Some(Route::Model("a%2Fb".into()))
        );
        assert_eq!(
            parse("/v1/models/%zz%4"),
            Some(Route::Model("%zz%4".into()))
        );
        assert_eq!(
            parse("/v1/models/%ff"),
            Some(Route::Model("\u{fffd}".into()))
        );
        assert_eq!(parse("/v1/models/é%"), Some(Route::Model("é%".into())));
    }

    #[test]
    fn everything_else_is_unknown() {
        for url in [
            "",
            "/",
            "/v1",
            "/v1/",
            "/v1/nonsense",
            "/v1/completions//",
            "/v1/completionsx",
            "/v1completions",
            "/v1/chat/completions",
            "/v2/completions",
            "/a?x=/v1/completions",
            "https://page.example",
            "/v1/models//",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
    }

    #[test]
    fn a_bare_base_path() {
        let root = ["/".to_owned()];
        assert_eq!(
            Route::parse("/completions", &root),
            Some(Route::Completions)
        );
    }
}
