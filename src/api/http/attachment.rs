//! Images beside the body of a request. HTTP carries none: they come from JavaScript that calls the engine.

use std::rc::Rc;

use crate::images::Image;

/// An image that the body names as `attachment:0`, `attachment:1` and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// The bytes of a file.
    File(Rc<[u8]>),
    /// Pixels.
    Pixels(Rc<Image>),
}
