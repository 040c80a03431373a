//! Steps of the decoder's head, op by op: what it remembers of fed tokens, and the tokens that it drafts. They change
//! nothing that the decoder's own steps read.

use burn::tensor::{Device, Tensor};

use super::{Fed, Steps, mtp_inputs::MtpInputs, upload};
use crate::{
    Error, Result,
    model::layers::{decoder::Decoder, linear::Linear, mixer::LayerMemory, mtp_head::MtpHead},
    ops::{
        Finish, Kernel, Variant,
        argmax::{INVALID_TOKEN, argmax},
        dry_run,
        embedding::embedding,
        kv_memory::KvMemory,
        last_row::last_row,
        step::Segment,
    },
};

use super::sizes::{MAX_BATCH, MAX_TOKENS};

/// Consecutive tokens for the head.
pub(in crate::model) struct MtpTokens<'a> {
    /// Their place in a sequence.
    pub(in crate::model) segment: Segment<'a>,
    /// Their ids, at most [`MAX_TOKENS`].
    pub(in crate::model) ids: &'a [u32],
    /// The stream after the token before each of them, `[tokens, dim]` of [`Steps::normed`].
    pub(in crate::model) stream: Option<Tensor<2>>,
}

impl Steps {
    /// Whether the decoder has a head that drafts.
    pub fn has_head(&self) -> bool {
        self.mtp.is_some()
    }

    /// The last row of [`normed`](Self::normed), of the step that was just fed.
    pub fn last_normed(&self, fed: &Fed) -> Tensor<2> {
        let last = match fed.rows {
            1 => fed.x.clone(),
            _ => last_row(fed.x.clone(), &self.step),
        };
        self.decoder.normed(last)
    }

    /// Lets the head remember tokens.
    pub fn remember(&mut self, tokens: MtpTokens<'_>) -> Result<()> {
        let (inputs, head, kv) = of_head(&mut self.mtp, &self.decoder, &mut self.memory)?;
        inputs.step.set(&[tokens.segment]);
        let ids = upload(tokens.ids, self.device.tensors());
        let table = head.token_embd.as_ref().unwrap_or(&self.decoder.token_embd);
        let embeddings = embedding(ids, table, self.decoder.embedding_scale);
        head.remember(embeddings, tokens.stream, kv, &inputs.step);
        Ok(())
    }

    /// Lets the head remember tokens, and draft `count` tokens (at least one, at most [`MAX_BATCH`]) after them, each by the
    /// largest logit. Its memory of the drafted tokens is overwritten when those that came are remembered.
    pub async fn draft(&mut self, tokens: MtpTokens<'_>, count: usize) -> Result<Vec<u32>> {
        let variant = self.variant;
        let (inputs, head, kv) = of_head(&mut self.mtp, &self.decoder, &mut self.memory)?;
        inputs.step.set(&[tokens.segment]);
        let decoder = &self.decoder;
        let table = head.token_embd.as_ref().unwrap_or(&decoder.token_embd);
        let output: &Linear = head.output.as_ref().unwrap_or(&decoder.output);
        let mut ids = upload(tokens.ids, self.device.tensors());
        let mut stream = tokens.stream;
        for _ in 0..count {
            let embeddings = embedding(ids, table, decoder.embedding_scale);
            let all = head.forward(embeddings, stream, kv, &inputs.step);
            let last = match all.dims()[0] {
                1 => all,
                _ => last_row(all, &inputs.step),
            };
            let logits = output.product(last.clone(), None, Finish::Plain, None);
            argmax(
                logits,
                &mut inputs.id,
                &mut inputs.step,
                &mut inputs.drafted,
                variant,
            );
            ids = inputs.id.get();
            stream = Some(last);
        }
        drop(ids);
        let drafted = inputs.drafted.get();
        let mut words = self.words(vec![drafted]).await?.remove(0);
        words.truncate(count);
        // After invalid logits there is nothing to guess.
        let valid = words.iter().take_while(|id| **id != INVALID_TOKEN).count();
        words.truncate(valid);
        Ok(words)
    }
}

/// The kernels of the head's steps, of a model with the shapes of `decoder`. Its weights are not read.
pub fn head_kernels(decoder: &Decoder, memory: &[LayerMemory], device: &Device) -> Vec<Kernel> {
    let (mut inputs, mut memory) = (Some(MtpInputs::new(1, device)), memory.to_vec());
    let Ok((inputs, head, kv)) = of_head(&mut inputs, decoder, &mut memory) else {
        return Vec::new();
    };
    let run = dry_run(|| {
        for rows in [1, MAX_BATCH, MAX_TOKENS] {
            let ids = || upload(&vec![0; rows], device);
            let embeddings = || embedding(ids(), &decoder.token_embd, decoder.embedding_scale);
            let stream = decoder.normed(embeddings());
            head.remember(embeddings(), Some(stream.clone()), kv, &inputs.step);
            if rows > MAX_BATCH {
                continue;
            }
            let all = head.forward(embeddings(), Some(stream), kv, &inputs.step);
            let last = last_row(all, &inputs.step);
            let output = head.output.as_ref().unwrap_or(&decoder.output);
            let logits = output.product(last, None, Finish::Plain, None);
            let (id, drafted) = (&mut inputs.id, &mut inputs.drafted);
            argmax(logits, id, &mut inputs.step, drafted, Variant::PORTABLE);
        }
    });
    run.kernels
}

/// The head with what it reads and its memory.
fn of_head<'a>(
    inputs: &'a mut Option<MtpInputs>,
    decoder: &'a Decoder,
    memory: &'a mut [LayerMemory],
) -> Result<(&'a mut MtpInputs, &'a MtpHead, &'a mut KvMemory)> {
    let head = decoder.mtp_head.as_deref();
    let kv = head.and_then(|head| memory.get_mut(head.memory_index));
    match (inputs, head, kv) {
        (Some(inputs), Some(head), Some(LayerMemory::Kv(kv))) => Ok((inputs, head, kv)),
        _ => Err(Error::Internal("a draft without a head".into())),
    }
}
