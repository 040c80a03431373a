//! The properties of a token: its kind, how its text is spelled, and its role.

/// The spelling of ordinary tokens in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSpelling {
    /// GPT-2's stand-ins for bytes.
    ByteLevel,
    /// UTF-8 with U+2581 (▁) for a space.
    SentencePiece,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Ordinary text.
    Normal,
    /// Stands for text that no token covers: hidden.
    Unknown,
    /// Structure, such as end of text: hidden.
    Control,
    /// Literal text that is never split.
    UserDefined,
    /// A placeholder without text.
    Unused,
    /// One byte, written `<0xHH>`.
    Byte,
}

/// The tokens with a special meaning; ids are below the number of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// Start of text.
    pub bos_id: Option<u32>,
    /// End of text.
    pub eos_id: Option<u32>,
    /// Stands for text that no token covers.
    pub unknown_id: Option<u32>,
    /// Further ids that end a text or a turn.
    pub end_ids: Vec<u32>,
}
