//! Images of a request at URLs of the network (specification 4.2): bounds of size and time. The host fetches them.

use futures_util::future::{Either, select};

use crate::api::host::{Host, ImageError};
use crate::api::http::Attachment;

/// Longest time for one file.
const LIMIT_MS: u32 = 30_000;
/// The maximum number of characters of a URL in an error.
const SHOWN_CHARS: usize = 160;

/// Fetches the images of one request, one after another.
pub(super) struct RemoteImages<'h> {
    host: &'h dyn Host,
    /// The bytes that the files that follow may have together.
    left_bytes: usize,
}

impl<'h> RemoteImages<'h> {
    /// Together they may have as many bytes as the body of a request, which could hold them as data URLs.
    pub(super) fn new(host: &'h dyn Host, max_body_bytes: usize) -> RemoteImages<'h> {
        RemoteImages {
            host,
            left_bytes: max_body_bytes,
        }
    }

    /// The file at a URL. Dropping the future ends the request for it.
    pub(super) async fn fetch(&mut self, url: &str) -> Result<Attachment, ImageError> {
        let fetched = self.host.fetch_image(url, self.left_bytes);
        let host = self.host;
        // A host's timer may be a thread: it is started only for a file that is not there at once.
        let limit = Box::pin(async { host.sleep_ms(LIMIT_MS).await });
        let file = match select(fetched, limit).await {
            Either::Left((file, _)) => file,
            Either::Right(_) => Err(ImageError::Invalid(format!(
                "it did not arrive within {} s",
                LIMIT_MS / 1000
            ))),
        };
        let file = file.and_then(|file| self.counted(file));
        let named = |reason: String| {
            let shown: String = url.chars().take(SHOWN_CHARS).collect();
            format!("{shown}: {reason}")
        };
        file.map_err(|error| match error {
            ImageError::Invalid(reason) => ImageError::Invalid(named(reason)),
            ImageError::Unsupported(reason) => ImageError::Unsupported(named(reason)),
        })
    }

    fn counted(&mut self, file: Vec<u8>) -> Result<Attachment, ImageError> {
        match self.left_bytes.checked_sub(file.len()) {
            Some(left) => {
                self.left_bytes = left;
                Ok(Attachment::File(file.into()))
            }
            None => Err(ImageError::Invalid(format!(
                "the images of a request have more bytes than a body may have ({} are left for it)",
                self.left_bytes
            ))),
        }
    }
}
