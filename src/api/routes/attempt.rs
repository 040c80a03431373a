//! One run of a request that generates text: the first one, or one that continues the answer of an earlier run. The parts of an
//! answer that do not depend on the route: its id and time, the position of its stream, and its headers.

use std::rc::Rc;

use futures_core::Stream;

use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::fields::Streaming;
use crate::api::http::{KeepAlive, Request, Response};
use crate::api::progress::{Position, Progress};
use crate::api::random_id;
use crate::api::run::Run;
use crate::text::LocalTime;

/// One run of a request.
pub(super) struct Attempt {
    earlier: Option<Position>,
    /// Unix seconds of the first run. A chat template may print the date, and a second run has to make the same prompt.
    pub created_s: u64,
    /// The same time on the clock of the host.
    pub local_time: LocalTime,
}

impl Attempt {
    /// Reads the position of the request, if it has one.
    ///
    /// # Errors
    /// [`crate::Error::Internal`] if the text is not a position.
    pub(super) fn read(endpoint: &Endpoint, request: &Request) -> Result<Attempt> {
        let position = request.position.as_deref();
        let earlier = position.map(Position::read).transpose()?;
        let created_s = match &earlier {
            Some(earlier) => earlier.created_s,
            None => endpoint.host.now_ms() / 1000,
        };
        Ok(Attempt {
            earlier,
            created_s,
            local_time: LocalTime::new(created_s, endpoint.host.utc_offset_minutes()),
        })
    }

    /// The position of the earlier run.
    pub(super) fn earlier(&self) -> Option<&Position> {
        self.earlier.as_ref()
    }

    /// The id of the answer: that of the earlier run, or a new one that begins with `prefix`.
    pub(super) fn id(&self, prefix: &str) -> String {
        match &self.earlier {
            Some(earlier) => earlier.id.clone(),
            None => random_id::answer_id(prefix),
        }
    }

    /// Whether an earlier run sent the chunk with the token counts.
    fn usage_sent(&self) -> bool {
        self.earlier().is_some_and(|earlier| earlier.usage_sent)
    }

    /// The streaming options that are left: the chunk with the token counts is sent once.
    pub(super) fn remaining(&self, streaming: Streaming) -> Streaming {
        Streaming {
            include_usage: streaming.include_usage && !self.usage_sent(),
            ..streaming
        }
    }

    /// The number of events that earlier runs sent, of a stream that numbers them.
    pub(super) fn events_sent(&self) -> usize {
        self.earlier().map_or(0, |earlier| earlier.events_sent)
    }

    /// The position before the first event of a stream.
    pub(super) fn progress(&self, id: &str, run: &Run) -> Rc<Progress> {
        let progress = Rc::new(Progress::default());
        progress.begin(Position {
            id: id.to_owned(),
            created_s: self.created_s,
            seeds: run.seeds.clone(),
            candidates: run.delivered().to_vec(),
            usage_sent: self.usage_sent(),
            events_sent: self.events_sent(),
        });
        progress
    }
}

/// An answer that is a stream of events.
pub(super) fn streamed(
    endpoint: &Endpoint,
    events: impl Stream<Item = Vec<u8>> + 'static,
    progress: Rc<Progress>,
) -> Response {
    let (host, interval_ms) = (endpoint.host.clone(), endpoint.switches.keep_alive_ms);
    let events = KeepAlive::new(Box::pin(events), host, interval_ms);
    Response::events(Box::pin(events), progress)
}

/// An answer with the header that tells how many tokens were cut from its prompts.
pub(super) fn with_dropped_tokens(mut response: Response, dropped_tokens: usize) -> Response {
    if dropped_tokens > 0 {
        response.push_header("x-prompt-truncated", &dropped_tokens.to_string());
    }
    response
}
