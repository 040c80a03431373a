//! Decides which web pages may use the server. It listens only on this machine, but any page in a browser on this machine
//! can send requests to it, from its own origin (`Origin`) or to a name that resolves here by DNS rebinding (`Host`).

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, ORIGIN};

/// The names and origins that are allowed besides those of this machine.
#[derive(Debug, Default)]
pub struct Access {
    hosts: Vec<String>,
    origins: Vec<String>,
    every_origin: bool,
}

impl Access {
    /// Allows requests to a name, given without a port.
    pub fn allow_host(&mut self, host: &str) {
        self.hosts.push(host.to_ascii_lowercase());
    }

    /// Allows pages of an origin; `*` allows every page.
    ///
    /// # Errors
    ///
    /// If it is not an origin.
    pub fn allow_origin(&mut self, origin: &str) -> Result<(), String> {
        if origin == "*" {
            self.every_origin = true;
            return Ok(());
        }
        let is_origin = matches!(
            origin.split_once("://"),
            Some(("http" | "https", rest)) if !rest.is_empty() && !rest.contains('/')
        );
        if !is_origin {
            return Err(format!(
                "--allow-origin is *, or an origin such as https://app.example.com, not {origin}"
            ));
        }
        self.origins.push(origin.to_ascii_lowercase());
        Ok(())
    }

    /// The reason why a request with these headers is refused, and the option that allows it. `None` if it is not refused.
    pub fn refusal(&self, headers: &HeaderMap) -> Option<String> {
        let text = |name: HeaderName| {
            headers.get(name).map(|value| {
                let value = String::from_utf8_lossy(value.as_bytes());
                value.to_ascii_lowercase()
            })
        };
        if let Some(host) = text(HOST)
            && !self.allows_host(without_port(&host))
        {
            return Some(format!(
                "this server answers requests to this machine, not to {host}; --allow-host {} allows them",
                without_port(&host)
            ));
        }
        if let Some(origin) = text(ORIGIN)
            && !self.allows_origin(&origin)
        {
            return Some(format!(
                "pages of {origin} may not use this server; --allow-origin {} allows them",
                if origin == "null" { "*" } else { &origin }
            ));
        }
        None
    }

    fn allows_host(&self, host: &str) -> bool {
        is_this_machine(host) || self.hosts.iter().any(|allowed| allowed == host)
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let is_local = origin
            .split_once("://")
            .is_some_and(|(_, authority)| is_this_machine(without_port(authority)));
        self.every_origin || is_local || self.origins.iter().any(|allowed| allowed == origin)
    }
}

/// Browsers resolve `localhost` and names below it to the loopback address themselves.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// `[::1]:8080` to `[::1]`, `localhost:8080` to `localhost`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(access: &Access, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        access.refusal(&headers).is_none()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let access = Access::default();
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST:1",
            "app.localhost:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(is_allowed(&access, host, None), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "notlocalhost",
            "192.168.1.2:8080",
            "127.0.0.1.evil.example",
            "[::2]:80",
            "",
        ] {
            assert!(!is_allowed(&access, host, None), "{host}");
        }
    }

    #[test]
    fn only_pages_of_this_machine_are_answered() {
        let access = Access::default();
        for origin in [
            "http://localhost:3000",
            "https://localhost",
            "http://127.0.0.1:8080",
            "http://[::1]:5173",
        ] {
            assert!(is_allowed(&access, "localhost", Some(origin)), "{origin}");
        }
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "localhost",
            "https://evil.example:127",
        ] {
            assert!(!is_allowed(&access, "localhost", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn options_allow_more() {
        let mut access = Access::default();
        access.allow_host("Box.LAN");
        access.allow_origin("https://app.example.com").unwrap();
        assert!(is_allowed(&access, "box.lan:8080", None));
        assert!(is_allowed(
            &access,
            "box.lan",
            Some("https://app.example.com")
        ));
        assert!(!is_allowed(
            &access,
            "box.lan",
            Some("http://app.example.com")
        ));
        assert!(access.allow_origin("app.example.com").is_err());
        assert!(access.allow_origin("https://app.example.com/page").is_err());
        access.allow_origin("*").unwrap();
        assert!(is_allowed(&access, "localhost", Some("null")));
    }
}
