//! A counting semaphore for tasks of one thread: permits are given out in the order in which they are requested.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use futures_channel::oneshot::{self, Sender};

/// Units that tasks share. Clones share the same units.
#[derive(Clone)]
pub struct Semaphore(Rc<State>);

struct State {
    total: u64,
    free: Cell<u64>,
    waiting: RefCell<VecDeque<Waiting>>,
}

struct Waiting {
    units: u64,
    sender: Sender<Permit>,
}

/// Units that a task holds until this is dropped.
pub struct Permit {
    of: Semaphore,
    units: u64,
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl Semaphore {
    /// A semaphore of this number of units.
    pub fn new(total: u64) -> Semaphore {
        Semaphore(Rc::new(State {
            total,
            free: Cell::new(total),
            waiting: RefCell::default(),
        }))
    }

    /// Waits until `units` are free, behind those who wait already. More units than there are mean all of them. Dropping the
    /// future gives its turn up.
    pub async fn acquire(&self, units: u64) -> Permit {
        let (sender, receiver) = oneshot::channel();
        let units = units.min(self.0.total);
        let waiting = Waiting { units, sender };
        self.0.waiting.borrow_mut().push_back(waiting);
        // Dropped after the receiver: then those behind a request that gave up may have their turn.
        let _turn = Turn(self);
        let receiver = receiver;
        self.give_out();
        let permit = receiver.await;
        // The sender is in the queue until it sends.
        permit.unwrap_or_else(|_| unreachable!("the semaphore is borrowed"))
    }

    /// Serves those who wait, in order, as far as units are free.
    fn give_out(&self) {
        while let Some(Waiting { units, sender }) = self.next() {
            self.0.free.set(self.0.free.get() - units);
            let of = self.clone();
            // A permit that nobody receives is dropped, which frees its units.
            drop(sender.send(Permit { of, units }));
        }
    }

    /// Takes the first who waits, if its units are free.
    fn next(&self) -> Option<Waiting> {
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.retain(|it| !it.sender.is_canceled());
        waiting.pop_front_if(|first| first.units <= self.0.free.get())
    }
}

struct Turn<'s>(&'s Semaphore);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.give_out();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Permit { of, units } = self;
        of.0.free.set(of.0.free.get() + *units);
        of.give_out();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::Semaphore;

    #[test]
    fn permits_are_given_out_in_order() {
        let semaphore = Semaphore::new(10);
        let mut first = pin!(semaphore.acquire(6));
        let first = first.as_mut().now_or_never().unwrap();
        let mut large = pin!(semaphore.acquire(8));
        let mut small = pin!(semaphore.acquire(1));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(
            small.as_mut().now_or_never().is_none(),
            "it is behind the large one"
        );
        drop(first);
        let large = large.as_mut().now_or_never().unwrap();
        let small = small.as_mut().now_or_never().unwrap();
        let mut all = pin!(semaphore.acquire(u64::MAX));
        assert!(all.as_mut().now_or_never().is_none());
        drop((large, small));
        assert!(
            all.as_mut().now_or_never().is_some(),
            "all units are enough"
        );
    }

    #[test]
    fn a_dropped_request_gives_its_turn_up() {
        let semaphore = Semaphore::new(2);
        let held = semaphore.acquire(1).now_or_never().unwrap();
        let mut large = Box::pin(semaphore.acquire(2));
        assert!(large.as_mut().now_or_never().is_none());
        let mut small = pin!(semaphore.acquire(1));
        assert!(small.as_mut().now_or_never().is_none());
        drop(large);
        assert!(small.as_mut().now_or_never().is_some());
        // Served, but dropped before it was polled again.
        let mut unseen = Box::pin(semaphore.acquire(2));
        assert!(unseen.as_mut().now_or_never().is_none());
        drop(held);
        drop(unseen);
        assert!(semaphore.acquire(2).now_or_never().is_some());
    }
}
