//! The check of the key (specification 1.3). There is one key and no notion of users.

use crate::{RequestFault, Result};

use super::message::Request;
use crate::api::error::fault_without_param;

/// Requires the key in `Authorization: Bearer` or in `X-Api-Key` if one is configured; otherwise the headers are ignored.
pub(in crate::api) fn check_authorization(request: &Request, api_key: Option<&str>) -> Result<()> {
    let Some(api_key) = api_key else {
        return Ok(());
    };
    let bearer = request.header("authorization").and_then(bearer_token);
    let given = [bearer, request.header("x-api-key").map(str::trim)];
    let is_key = |given: &str| equal_in_constant_time(given.as_bytes(), api_key.as_bytes());
    if given.into_iter().flatten().any(is_key) {
        return Ok(());
    }
    Err(fault_without_param(
        RequestFault::InvalidApiKey,
        "the Authorization header must be \"Bearer <key>\" with the configured key, or the X-Api-Key header the key",
    ))
}

fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim_start())
}

/// Compares in a time that depends only on the length of `given`, so that it does not reveal where the
/// first difference is.
fn equal_in_constant_time(given: &[u8], secret: &[u8]) -> bool {
    let mut difference = given.len() ^ secret.len();
    for (index, byte) in given.iter().enumerate() {
        let expected = secret.get(index).copied().unwrap_or(0);
        difference |= std::hint::black_box(usize::from(byte ^ expected));
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(authorization: Option<&str>, key: Option<&str>) -> bool {
        let header = authorization.map(|value| ("authorization", value));
        allowed_with(header.as_slice(), key)
    }

    fn allowed_with(headers: &[(&str, &str)], key: Option<&str>) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let request = Request {
            headers: headers.collect(),
            ..Request::default()
        };
        check_authorization(&request, key).is_ok()
    }

    #[test]
    fn either_header_may_have_the_key() {
        let key = Some("k1");
        assert!(allowed_with(&[("X-Api-Key", "k1")], key));
        assert!(allowed_with(
            &[("x-api-key", " k1 "), ("authorization", "Bearer unused")],
            key
        ));
        for headers in [
            &[("x-api-key", "k2")][..],
            &[("x-api-key", "")],
            &[("x-api-key", "Bearer k1")],
            &[("x-api-key", "k"), ("authorization", "k1")],
        ] {
            assert!(!allowed_with(headers, key), "{headers:?}");
        }
    }

    #[test]
    fn without_a_key_every_header_is_accepted() {
        for header in [None, Some(""), Some("Bearer x"), Some("Basic zzz")] {
            assert!(allowed(header, None));
        }
    }

    #[test]
    fn with_a_key_only_its_bearer_token_is_accepted() {
        assert!(allowed(Some("Bearer k1"), Some("k1")));
        assert!(allowed(Some("bearer  k1"), Some("k1")));
        for header in [
            None,
            Some(""),
            Some("Bearer"),
            Some("Bearer "),
            Some("Bearer k2"),
            Some("Bearer k"),
            Some("Bearer k12"),
            Some("Bearer k1\0"),
            Some("k1"),
            Some("Basic k1"),
        ] {
            assert!(!allowed(header, Some("k1")), "{header:?}");
        }
    }
}
