//! The optional time limit of a request (`requestTimeoutMs`).

use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};

use crate::api::host::Host;
use crate::{Error, Result};

/// The time at which work is cancelled, if there is one.
pub(in crate::api) struct Deadline {
    timer: Option<Pin<Box<dyn Future<Output = ()>>>>,
    timeout_ms: u32,
}

impl Deadline {
    /// A deadline `timeout_ms` from now.
    pub(in crate::api) fn new(host: &dyn Host, timeout_ms: Option<u32>) -> Deadline {
        Deadline {
            timer: timeout_ms.map(|timeout_ms| host.sleep_ms(timeout_ms)),
            timeout_ms: timeout_ms.unwrap_or_default(),
        }
    }

    /// The result of `work`, or an error if the time is up first; then `work` is dropped.
    pub(in crate::api) async fn limit<T>(
        &mut self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some(timer) = &mut self.timer else {
            return work.await;
        };
        match select(pin!(work), timer.as_mut()).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Error::Internal(format!(
                "the request took longer than {} ms",
                self.timeout_ms
            ))),
        }
    }
}
