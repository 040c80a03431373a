//! Changes to the model between requests, such as other adapters.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

use futures_channel::oneshot;
use futures_util::future::LocalBoxFuture;

use super::shared::Shared;
use crate::{Error, Result};

/// Returns the error that ends the engine, if there is one.
pub(super) type Change<M> = Box<dyn for<'a> FnOnce(&'a mut M) -> LocalBoxFuture<'a, Option<Error>>>;

/// The waiting changes, in order of arrival. They are dropped with the engine.
pub(super) type Changes<M> = RefCell<VecDeque<Change<M>>>;

/// Access to an engine's model while no request runs. Does not keep the engine alive.
pub struct ModelAccess<M> {
    changes: Weak<Changes<M>>,
    shared: Rc<Shared>,
}

impl<M> Clone for ModelAccess<M> {
    fn clone(&self) -> Self {
        Self {
            changes: self.changes.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<M> fmt::Debug for ModelAccess<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelAccess").finish_non_exhaustive()
    }
}

impl<M: 'static> ModelAccess<M> {
    pub(super) fn new(changes: &Rc<Changes<M>>, shared: Rc<Shared>) -> Self {
        Self {
            changes: Rc::downgrade(changes),
            shared,
        }
    }

    /// Runs `change` once the in-flight requests have ended. Waiting and new requests are answered after
    /// it. Cached prompts are dropped. The change is made even if its result is not awaited.
    ///
    /// # Errors
    /// The error of the change, of which [`Error::DeviceLost`] ends the engine. If the engine has ended,
    /// the reason why.
    pub async fn change<T: 'static>(
        &self,
        change: impl AsyncFnOnce(&mut M) -> Result<T> + 'static,
    ) -> Result<T> {
        let stopped = || {
            let down = self.shared.down.borrow().clone();
            down.unwrap_or_else(|| Error::Internal("the engine was stopped".into()))
        };
        let (sender, receiver) = oneshot::channel();
        let change: Change<M> = Box::new(move |model| {
            Box::pin(async move {
                let result = change(model).await;
                let fatal = match &result {
                    Err(error @ Error::DeviceLost(_)) => Some(error.clone()),
                    _ => None,
                };
                // The caller may have stopped waiting.
                let _ = sender.send(result);
                fatal
            })
        });
        let changes = self.changes.upgrade().ok_or_else(stopped)?;
        changes.borrow_mut().push_back(change);
        drop(changes);
        self.shared.changes.set(self.shared.changes.get() + 1);
        self.shared.activity.wake.raise();
        receiver.await.map_err(|_| stopped())?
    }
}
