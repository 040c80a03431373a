//! The optional time limit of a request (`requestTimeoutMs`).

use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};

use crate::Result;
use crate::api::host::Host;
use crate::engine::TimeLimit;

type Timer = Pin<Box<dyn Future<Output = ()>>>;

/// The time at which work is cancelled, if there is one.
pub(in crate::api) struct Deadline(Option<(TimeLimit, Timer)>);

impl Deadline {
    /// A deadline `timeout_ms` from now.
    pub(in crate::api) fn new(host: &dyn Host, timeout_ms: Option<u32>) -> Deadline {
        Deadline(timeout_ms.map(|timeout_ms| {
            let end_ms = host.now_ms().saturating_add(timeout_ms.into());
            let limit = TimeLimit { end_ms, timeout_ms };
            (limit, host.sleep_ms(timeout_ms))
        }))
    }

    /// The same for the engine, which ends the request even if nobody awaits its work.
    pub(in crate::api) fn time_limit(&self) -> Option<TimeLimit> {
        Some(self.0.as_ref()?.0)
    }

    /// The result of `work`, or an error if the time is up first; then `work` is dropped.
    pub(in crate::api) async fn limit<T>(
        &mut self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let Some((limit, timer)) = &mut self.0 else {
            return work.await;
        };
        match select(pin!(work), timer.as_mut()).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(limit.error()),
        }
    }
}
