//! The state that all routes share: switches, models and the host.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::expected_wait::RequestPace;
use super::host::Host;
use super::models::Models;
use super::switches::Switches;
use crate::engine::Semaphore;

/// Names of unknown fields that are remembered in order to warn once each. Further names are ignored
/// without a warning.
const MAX_WARNED_NAMES: usize = 256;

/// The state of the endpoint.
pub(super) struct Endpoint {
    pub switches: Switches,
    pub host: Rc<dyn Host>,
    pub models: Models,
    /// The time that requests take.
    pub pace: Rc<RequestPace>,
    /// One image is decoded at a time.
    pub decoder: Semaphore,
    warned: RefCell<BTreeSet<String>>,
}

impl Endpoint {
    /// An endpoint without models.
    pub(super) fn new(switches: Switches, host: Rc<dyn Host>) -> Endpoint {
        Endpoint {
            switches,
            host,
            models: Models::default(),
            pace: Rc::default(),
            decoder: Semaphore::new(1),
            warned: RefCell::default(),
        }
    }

    /// Warns once that the request field `name` is unknown.
    pub(super) fn warn_unknown(&self, name: &str) {
        let mut warned = self.warned.borrow_mut();
        if warned.len() < MAX_WARNED_NAMES && !warned.contains(name) {
            warned.insert(name.to_owned());
            let shown: String = name.chars().take(64).collect();
            self.host.warn(&format!(
                "inpage: the request field \"{shown}\" is unknown and ignored"
            ));
        }
    }
}
