//! The limits of a connection: the time that it may keep the server waiting, and the bytes that it may hold.

use std::time::Duration;

/// Limits of connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at the same time. Further ones are closed at once.
    pub connections: usize,
    /// Time to send the head of a request, the wait for the next request of a connection included.
    pub head: Duration,
    /// Time to send the body of a request.
    pub body: Duration,
    /// Time for which a connection may take no byte of its answer.
    pub write: Duration,
    /// Bytes of bodies that all requests hold together; at least the largest body.
    pub all_bodies_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            write: Duration::from_secs(30),
            all_bodies_bytes: 128 << 20,
        }
    }
}
