//! Builds the head that predicts the token after the next one: its block is after the layers of the file.

use super::modules::{Loader, linear_of, name};
use crate::{Result, model::layers::mtp_head::MtpHead, weights::ByteSource};

impl<S: ByteSource> Loader<'_, S> {
    /// The head that predicts the token after the next one.
    pub(super) async fn mtp_head(&mut self) -> Result<MtpHead> {
        let layers = std::mem::replace(&mut self.config, self.with_mtp_block);
        let block = layers.layers.len();
        let part = |part: &str| name(block, &format!("nextn.{part}"));
        let tables = self.rope_tables().await?;
        let input = format!("{}.weight", part("eh_proj"));
        let halves = self.tensors.column_halves(&input).await?;
        let [from_embedding, from_stream] = halves.map(|half| linear_of(half, None));
        let find = |it: &Self, name: &str| {
            let name = part(name);
            let found = it.tensors.find(&format!("{name}.weight"));
            found.map(|_| name)
        };
        let output_norm = find(self, "shared_head_norm");
        let output_norm = output_norm.unwrap_or_else(|| layers.output_norm_name.into());
        let (embeddings, output) = (find(self, "embed_tokens"), find(self, "shared_head_head"));
        let head = MtpHead {
            embedding_norm: self.norm(&part("enorm")).await?,
            stream_norm: self.norm(&part("hnorm")).await?,
            from_embedding,
            from_stream,
            attention: Box::pin(self.attention(block, &tables)).await?,
            feed_forward: Box::pin(self.feed_forward(block)).await?,
            output_norm: self.norm(&output_norm).await?,
            token_embd: match embeddings {
                Some(name) => Some(self.matrix(&name).await?),
                None => None,
            },
            output: match output {
                Some(name) => {
                    let mut output = self.matrix(&name).await?;
                    output.shape.rows = layers.token_ids;
                    Some(linear_of(output, None))
                }
                None => None,
            },
            memory_index: layers.memories().count(),
        };
        self.config = layers;
        Ok(head)
    }
}
