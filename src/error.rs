//! The error type of the crate. `api::error` maps each variant to the endpoint's error catalog
//! (specification 2.2).

/// An error anywhere between the request's bytes and the GPU.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request violates a rule of the endpoint.
    #[error("{message}")]
    Request {
        /// The rule that the request breaks.
        fault: RequestFault,
        /// The offending field, if one can be named.
        param: Option<String>,
        /// A message for humans. It names the field and the value, never repeats a whole prompt.
        message: String,
    },
    /// The model file is damaged or hostile; the text names the fault.
    #[error("invalid model file: {0}")]
    InvalidModelFile(String),
    /// The model file is valid, but this build cannot run it; the text names what is not supported.
    #[error("unsupported model: {0}")]
    UnsupportedModel(String),
    /// Bytes of the model could not be read (network, file, storage).
    #[error("cannot read the model: {0}")]
    Read(String),
    /// There is no usable GPU.
    #[error("no usable WebGPU device: {0}")]
    NoDevice(String),
    /// More requests are waiting than `maxQueue` allows.
    #[error("the queue is full: {max_queue} requests are waiting")]
    QueueFull {
        /// The configured limit.
        max_queue: usize,
    },
    /// GPU or wasm memory ran out.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The GPU device was lost.
    #[error("the GPU device was lost: {0}")]
    DeviceLost(String),
    /// The logits contain NaN or +inf, or no finite value.
    #[error("the model produced invalid logits at position {position}")]
    InvalidLogits {
        /// Index of the token that was to be sampled.
        position: usize,
    },
    /// A constraint allows no token, but the completion is not finished.
    #[error("the constraint allows no token at position {position}")]
    GrammarDeadEnd {
        /// Index of the token that was to be sampled.
        position: usize,
    },
    /// The reader of an answer read too little of it while other requests waited.
    #[error("the answer was not read while other requests waited for its memory")]
    StalledReader,
    /// The caller aborted.
    #[error("aborted")]
    Aborted,
    /// A bug or a wrong configuration of inpage itself.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The rules that a request can violate (specification 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFault {
    /// The body is not JSON.
    InvalidJson,
    /// JSON, but not an object.
    InvalidBody,
    /// `model` or `prompt` is absent.
    MissingRequiredParameter,
    /// Wrong JSON type.
    InvalidType,
    /// A number or token id outside its range.
    OutOfRange,
    /// An unknown word, an empty stop string, an empty array, ...
    InvalidValue,
    /// Two fields exclude each other.
    ConflictingParameters,
    /// A valid field that this model or build cannot honor.
    UnsupportedParameter,
    /// A field that no route knows; only with the switch `unknownFields: "error"`.
    UnknownParameter,
    /// A grammar does not compile.
    InvalidGrammar,
    /// A JSON schema is malformed or uses something unsupported.
    InvalidSchema,
    /// The prompt and `max_tokens` do not fit the context.
    ContextLengthExceeded,
    /// `Authorization` is missing or wrong.
    InvalidApiKey,
    /// No such model.
    ModelNotFound,
    /// No such route.
    UnknownUrl,
    /// The route exists, the method does not.
    MethodNotAllowed,
    /// The body is larger than `maxBodyBytes`.
    RequestTooLarge,
    /// The content type is not JSON.
    UnsupportedMediaType,
    /// The model is still loading.
    ModelLoading {
        /// Seconds until it is expected to be loaded.
        retry_after_s: u32,
    },
    /// The model is registered but not loaded, or its load failed.
    ModelNotLoaded,
    /// The load failed and will be tried again.
    ModelLoadFailed {
        /// Seconds until a request starts the next attempt.
        retry_after_s: u32,
    },
}

impl Error {
    /// `sent` does not fit a context of `context_tokens`. Clients recognize this error by the first sentence of its message:
    /// do not change its words.
    pub(crate) fn exceeds_context(
        param: &str,
        context_tokens: usize,
        sent: impl std::fmt::Display,
    ) -> Error {
        Error::Request {
            fault: RequestFault::ContextLengthExceeded,
            param: Some(param.to_owned()),
            message: format!(
                "This model's maximum context length is {context_tokens} tokens. {sent}."
            ),
        }
    }
}

/// `std::result::Result` with the crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
