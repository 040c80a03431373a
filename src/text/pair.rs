//! A query and a document as one sequence of tokens, for models that compare them (specification 23.2).

use std::ops::Range;

use super::chat_template::Marker;
use super::encoding::{Pause, Special};
use super::tokenizer::Tokenizer;
use crate::{Error, Result};

/// The template of a reranker, among the chat templates of its files.
const TEMPLATE: &str = "rerank";
const QUERY: &str = "{query}";
const DOCUMENT: &str = "{document}";

/// The tokens of a query and a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The ids of all tokens, those that the tokenizer adds included.
    pub ids: Vec<u32>,
    /// Number of leading tokens of type 0: those before the document, or all tokens of a template.
    pub first_tokens: usize,
    /// The tokens of the document, which may be cut at their end.
    pub document: Range<usize>,
}

impl Pair {
    /// Removes the last `count` tokens of the document.
    pub fn cut_document(&mut self, count: usize) {
        let end = self.document.end;
        let start = end.saturating_sub(count).max(self.document.start);
        self.ids.drain(start..end);
        self.document.end = start;
        self.first_tokens = self.first_tokens.min(self.ids.len());
    }
}

/// Puts a query beside documents. What does not depend on the document is tokenized once.
pub struct PairEncoder<'t> {
    tokenizer: &'t Tokenizer,
    query: EncodedQuery,
}

/// A query, in the form in which it stands beside documents.
enum EncodedQuery {
    /// The ids before the document, and the id after it.
    Joined(Vec<u32>, Option<u32>),
    /// The prompt of a template: special tokens that a document spells out become text by the marker.
    Template {
        marker: Marker,
        before: String,
        before_tokens: usize,
        after: String,
        after_ids: Vec<u32>,
    },
}

impl Tokenizer {
    /// An encoder of pairs of `query` and each of `documents`: in the files' template for it, else one text behind the other.
    ///
    /// # Errors
    /// The errors of [`Tokenizer::encode`].
    pub async fn pairs<'t>(
        &'t self,
        query: &str,
        documents: &[String],
        pause: Pause<'_>,
    ) -> Result<PairEncoder<'t>> {
        let query = match self.chat_templates().get(TEMPLATE) {
            Some(template) => {
                let documents = documents.iter().map(String::as_str);
                let texts = [template, query].into_iter().chain(documents);
                let marker = Marker::absent_from(texts);
                let marker =
                    marker.ok_or_else(|| Error::Internal("no character is unused".into()))?;
                self.query_in(template, query, marker, pause).await?
            }
            None => self.query_joined(query, pause).await?,
        };
        let tokenizer = self;
        Ok(PairEncoder { tokenizer, query })
    }

    /// `[CLS] query [SEP] document [SEP]` for WordPiece, `<s> query </s></s> document </s>` for other tokenizers, as BERT
    /// and RoBERTa were trained.
    async fn query_joined(&self, query: &str, pause: Pause<'_>) -> Result<EncodedQuery> {
        let begin = self.bos_id().filter(|_| self.adds_bos());
        let end = self.eos_id().filter(|_| self.adds_eos());
        let separators = match self.kind() {
            "bert" => 1,
            _ => 2,
        };
        let mut ids: Vec<u32> = begin.into_iter().collect();
        ids.extend(self.encode_in_slices(query, Special::None, pause).await?);
        ids.extend(end.into_iter().cycle().take(separators));
        Ok(EncodedQuery::Joined(ids, end))
    }

    async fn query_in(
        &self,
        template: &str,
        query: &str,
        marker: Marker,
        pause: Pause<'_>,
    ) -> Result<EncodedQuery> {
        let query = self.marked(query, marker);
        let (before, after) = template.split_once(DOCUMENT).unwrap_or((template, ""));
        let before = before.replace(QUERY, &query);
        let after = after.replace(QUERY, &query);
        // A space before the document may be part of its first token.
        let trimmed = before.trim_end_matches(' ');
        let rendered = Special::Rendered(marker);
        Ok(EncodedQuery::Template {
            before_tokens: self.encode_in_slices(trimmed, rendered, pause).await?.len(),
            after_ids: self.encode_in_slices(&after, Special::None, pause).await?,
            before,
            after,
            marker,
        })
    }

    /// A text whose special tokens are marked as text.
    fn marked(&self, text: &str, marker: Marker) -> String {
        let marked = self.mark(text, marker, |_| false);
        marked.unwrap_or_else(|| text.to_owned())
    }
}

impl PairEncoder<'_> {
    /// The tokens of the query and one of the documents. In a template the whole prompt is tokenized, because words may go on
    /// from the query to the document.
    ///
    /// # Errors
    /// The errors of [`Tokenizer::encode`].
    pub async fn encode(&self, document: &str, pause: Pause<'_>) -> Result<Pair> {
        let tokenizer = self.tokenizer;
        match &self.query {
            EncodedQuery::Joined(before, end) => {
                let mut ids = before.clone();
                let encoded = tokenizer.encode_in_slices(document, Special::None, pause);
                ids.extend(encoded.await?);
                let document = before.len()..ids.len();
                ids.extend(end);
                Ok(Pair {
                    ids,
                    first_tokens: before.len(),
                    document,
                })
            }
            EncodedQuery::Template {
                marker,
                before,
                before_tokens: start,
                after,
                after_ids,
            } => {
                let document = tokenizer.marked(document, *marker);
                let whole = format!("{before}{document}{after}");
                let rendered = Special::Rendered(*marker);
                let ids = tokenizer.encode_in_slices(&whole, rendered, pause).await?;
                // Templates go on with a special token after the document, so that its tokens end there.
                let end = match ids.ends_with(after_ids) {
                    true => ids.len() - after_ids.len(),
                    false => *start,
                };
                Ok(Pair {
                    first_tokens: ids.len(),
                    document: (*start).min(end)..end,
                    ids,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ids: usize, document: Range<usize>) -> Pair {
        Pair {
            ids: (0..ids as u32).collect(),
            first_tokens: document.start,
            document,
        }
    }

    #[test]
    fn documents_are_cut_at_their_end() {
        let mut cut = pair(8, 3..7);
        cut.cut_document(2);
        assert_eq!(cut.ids, [0, 1, 2, 3, 4, 7]);
        assert_eq!((cut.first_tokens, cut.document.clone()), (3, 3..5));
        cut.cut_document(9);
        assert_eq!(cut.ids, [0, 1, 2, 7]);
        assert!(cut.document.is_empty());
    }
}
