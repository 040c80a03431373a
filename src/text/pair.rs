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
    /// All ids.
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

impl Tokenizer {
    /// The tokens of a pair: in the files' template for it, else one text behind the other.
    ///
    /// # Errors
    /// The errors of [`Tokenizer::encode`].
    pub async fn encode_pair(&self, query: &str, document: &str, pause: Pause<'_>) -> Result<Pair> {
        match self.chat_templates().get(TEMPLATE) {
            Some(template) => self.encode_pair_in(template, query, document, pause).await,
            None => self.encode_pair_joined(query, document, pause).await,
        }
    }

    /// `[CLS] query [SEP] document [SEP]` for WordPiece, `<s> query </s></s> document </s>` for other tokenizers, as BERT
    /// and RoBERTa were trained.
    async fn encode_pair_joined(
        &self,
        query: &str,
        document: &str,
        pause: Pause<'_>,
    ) -> Result<Pair> {
        let begin = self.bos_id().filter(|_| self.adds_bos());
        let end = self.eos_id().filter(|_| self.adds_eos());
        let separators = match self.kind() {
            "bert" => 1,
            _ => 2,
        };
        let mut ids: Vec<u32> = begin.into_iter().collect();
        ids.extend(self.encode_in_slices(query, Special::None, pause).await?);
        ids.extend(end.into_iter().cycle().take(separators));
        let start = ids.len();
        ids.extend(
            self.encode_in_slices(document, Special::None, pause)
                .await?,
        );
        let document = start..ids.len();
        ids.extend(end);
        Ok(Pair {
            ids,
            first_tokens: start,
            document,
        })
    }

    /// The prompt of a template. Special tokens that the query or the document spells out are text.
    async fn encode_pair_in(
        &self,
        template: &str,
        query: &str,
        document: &str,
        pause: Pause<'_>,
    ) -> Result<Pair> {
        let marker = Marker::absent_from([template, query, document]);
        let marker = marker.ok_or_else(|| Error::Internal("no character is unused".into()))?;
        let marked = |text: &str| {
            let marked = self.mark(text, marker, |_| false);
            marked.unwrap_or_else(|| text.to_owned())
        };
        let (before, after) = template.split_once(DOCUMENT).unwrap_or((template, ""));
        let before = before.replace(QUERY, &marked(query));
        let after = after.replace(QUERY, &marked(query));
        let whole = format!("{before}{}{after}", marked(document));
        let rendered = Special::Rendered(marker);
        let ids = self.encode_in_slices(&whole, rendered, pause).await?;
        // A space before the document may be part of its first token.
        let before = before.trim_end_matches(' ');
        let start = self.encode_in_slices(before, rendered, pause).await?.len();
        let after = self.encode_in_slices(&after, Special::None, pause).await?;
        // Templates go on with a special token after the document, so that its tokens end there.
        let end = match ids.ends_with(&after) {
            true => ids.len() - after.len(),
            false => start,
        };
        Ok(Pair {
            first_tokens: ids.len(),
            document: start.min(end)..end,
            ids,
        })
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
