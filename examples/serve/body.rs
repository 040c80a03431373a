//! Reads the bodies of requests within limits of time and of bytes. What the endpoint says about a body is not decided here.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

/// Bytes of a refused body that are read and dropped. A client that is still sending would see a broken connection
/// otherwise, and not the answer.
const DISCARDED_BYTES: usize = 1 << 20;

/// The time that the server waits for the rest of a body.
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// The bytes that bodies may still take.
#[derive(Clone)]
pub struct BodyBudget(Rc<Cell<usize>>);

/// A body, whose bytes are returned to the budget when it is dropped.
pub struct HeldBody {
    pub bytes: Vec<u8>,
    held: Held,
}

/// Bytes taken from a budget.
pub struct Held {
    budget: BodyBudget,
    bytes: usize,
}

/// The reason why there is no body.
pub enum BodyFault {
    /// The client left.
    Broken(hyper::Error),
    /// It did not arrive in time.
    Late,
    /// Other bodies take all memory.
    NoRoom,
}

impl BodyBudget {
    pub fn new(bytes: usize) -> Self {
        Self(Rc::new(Cell::new(bytes)))
    }

    /// Reads a body, or a little more than `max_bytes` of it, because the endpoint refuses longer ones.
    pub async fn read(
        &self,
        body: &mut Incoming,
        max_bytes: usize,
        time: Duration,
    ) -> Result<HeldBody, BodyFault> {
        let read = timeout(time, self.read_all(body, max_bytes)).await;
        read.unwrap_or(Err(BodyFault::Late))
    }

    async fn read_all(&self, body: &mut Incoming, max_bytes: usize) -> Result<HeldBody, BodyFault> {
        let mut read = HeldBody {
            bytes: Vec::new(),
            held: Held {
                budget: self.clone(),
                bytes: 0,
            },
        };
        while read.bytes.len() <= max_bytes
            && let Some(frame) = body.frame().await
        {
            if let Some(data) = frame.map_err(BodyFault::Broken)?.data_ref() {
                read.held.take(data.len())?;
                read.bytes.extend_from_slice(data);
            }
        }
        Ok(read)
    }
}

impl HeldBody {
    /// The bytes, and what holds their place in the budget.
    pub fn into_parts(self) -> (Vec<u8>, Held) {
        (self.bytes, self.held)
    }
}

impl Held {
    fn take(&mut self, bytes: usize) -> Result<(), BodyFault> {
        let left = &self.budget.0;
        left.set(left.get().checked_sub(bytes).ok_or(BodyFault::NoRoom)?);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let left = &self.budget.0;
        left.set(left.get() + self.bytes);
    }
}

/// Reads and drops the body of a refused request, unless it is long.
pub async fn discard(mut body: Incoming) {
    if body.size_hint().lower() > DISCARDED_BYTES as u64 {
        return;
    }
    let discarded = async {
        let mut bytes = 0;
        while bytes <= DISCARDED_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            bytes += frame.data_ref().map_or(0, |data| data.len());
        }
    };
    // Whatever was not read in time is not waited for.
    let _ = timeout(DISCARD_TIME, discarded).await;
}
