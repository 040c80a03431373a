//! The bounded channels of events from the engine to the reader of a request: report whether there is room and
//! whether the reader is gone, and wake the waiting side.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::event::Event;
use super::wake::WakeFlag;
use crate::Error;

/// The number of active candidates, and the flag by which readers wake the engine.
#[derive(Default)]
pub(super) struct Activity {
    /// Candidates neither ended nor cancelled.
    pub(super) active: Cell<usize>,
    /// Raised by anything that may give the engine work.
    pub(super) wake: WakeFlag,
}

/// Places of an open channel that no other channel takes: for one event, and for the last one.
const OWN_PLACES: usize = 2;

/// The unread events that the candidates of a request share.
pub(super) struct EventBudget {
    max_unread: usize,
    taken: Cell<usize>,
    /// Channels that are not closed.
    open: Cell<usize>,
}

impl EventBudget {
    /// At most `max_unread` events, or [`OWN_PLACES`] per candidate if that is more.
    pub(super) fn new(max_unread: usize) -> Rc<Self> {
        Rc::new(Self {
            max_unread,
            taken: Cell::new(0),
            open: Cell::new(0),
        })
    }

    /// Free places of each open channel, so that all of them may take theirs in one step.
    fn share(&self) -> usize {
        let free = self.max_unread.saturating_sub(self.taken.get());
        free / self.open.get().max(1)
    }
}

struct Channel {
    unread: VecDeque<Event>,
    budget: Rc<EventBudget>,
    reader: Option<Waker>,
    /// Whether the last event was sent or the reader is gone; nothing follows.
    closed: bool,
    cached_tokens: Rc<Cell<usize>>,
}

impl Channel {
    /// The places that it takes. One is reserved for the last event.
    fn taken(&self) -> usize {
        match self.closed {
            true => self.unread.len(),
            false => OWN_PLACES.max(self.unread.len() + 1),
        }
    }

    /// Events that may be sent, the last one not counted.
    fn room(&self) -> usize {
        OWN_PLACES.saturating_sub(self.unread.len() + 1) + self.budget.share()
    }

    /// Makes a change and takes or returns the places for it.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.taken();
        let result = change(self);
        let taken = &self.budget.taken;
        taken.set(taken.get() - before + self.taken());
        result
    }
}

/// The events of one candidate, in order; ends after `Finished` or `Failed`.
///
/// Dropping it cancels the candidate within one step of the engine. While 256 events
/// ([`super::EngineLimits::max_unread_events`]) of the candidates of a request are unread, generation pauses. Each
/// candidate has a place of its own for one event.
pub struct Events {
    channel: Rc<RefCell<Channel>>,
    activity: Rc<Activity>,
}

/// The engine's end of [`Events`]; dropping it unfinished fails the candidate.
pub(super) struct EventSender {
    channel: Rc<RefCell<Channel>>,
    activity: Rc<Activity>,
}

/// A channel for one candidate, which counts as active until it is closed.
pub(super) fn channel(activity: &Rc<Activity>, budget: &Rc<EventBudget>) -> (EventSender, Events) {
    budget.taken.set(budget.taken.get() + OWN_PLACES);
    budget.open.set(budget.open.get() + 1);
    let channel = Rc::new(RefCell::new(Channel {
        unread: VecDeque::new(),
        budget: budget.clone(),
        reader: None,
        closed: false,
        cached_tokens: Rc::default(),
    }));
    activity.active.set(activity.active.get() + 1);
    (
        EventSender {
            channel: channel.clone(),
            activity: activity.clone(),
        },
        Events {
            channel,
            activity: activity.clone(),
        },
    )
}

fn close(channel: &mut Channel, activity: &Activity) {
    if !channel.closed {
        channel.closed = true;
        let open = &channel.budget.open;
        open.set(open.get() - 1);
        activity.active.set(activity.active.get() - 1);
    }
}

impl EventSender {
    /// Sends an event, which may be the last one. Does nothing once the channel is closed.
    pub(super) fn send(&self, event: Event) {
        let mut channel = self.channel.borrow_mut();
        if channel.closed {
            return;
        }
        channel.change(|channel| {
            if matches!(event, Event::Finished { .. } | Event::Failed(_)) {
                close(channel, &self.activity);
            }
            channel.unread.push_back(event);
        });
        let reader = channel.reader.take();
        drop(channel);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Events the reader has room for, the last one not counted; 0 pauses the candidate.
    pub(super) fn room(&self) -> usize {
        self.channel.borrow().room()
    }

    /// Records how many tokens of the prompt came from the cache.
    pub(super) fn note_cached(&self, prompt_tokens: usize) {
        self.channel.borrow().cached_tokens.set(prompt_tokens);
    }

    /// Whether the reader is gone or the candidate has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.channel.borrow().closed
    }
}

impl Events {
    /// Tokens of the prompt that were found in the KV pages of earlier requests. Final once the
    /// first token has arrived. The cell outlives the events.
    pub fn cached_prompt_tokens(&self) -> Rc<Cell<usize>> {
        self.channel.borrow().cached_tokens.clone()
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        self.send(Event::Failed(Error::Internal(
            "the engine was stopped".into(),
        )));
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channel = self.channel.borrow();
        f.debug_struct("Events")
            .field("unread", &channel.unread)
            .field("closed", &channel.closed)
            .finish_non_exhaustive()
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut channel = self.channel.borrow_mut();
        let was_full = channel.room() == 0;
        let others_were_full = channel.budget.share() == 0;
        match channel.change(|channel| channel.unread.pop_front()) {
            Some(event) => {
                let resumes = was_full && channel.room() > 0;
                let resumes_others = others_were_full && channel.budget.share() > 0;
                drop(channel);
                if resumes || resumes_others {
                    self.activity.wake.raise();
                }
                Poll::Ready(Some(event))
            }
            None if channel.closed => Poll::Ready(None),
            None => {
                channel.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut channel = self.channel.borrow_mut();
        channel.change(|channel| {
            close(channel, &self.activity);
            channel.unread.clear();
        });
        channel.reader = None;
        drop(channel);
        self.activity.wake.raise();
    }
}
