//! The device memory of the sampler kernels, and how the host writes it.

use burn::tensor::{Device, Int, Tensor};

use super::layout::{self, RESULT_WORDS, RowChoice, SamplerShape};
use crate::ops::in_place::InPlace;
use crate::sample::{Sampler, TokenMask};

/// Parameters, accounts and results of as many samplers as there are slots. A clone on the GPU is
/// the same memory.
#[derive(Debug, Clone)]
pub struct SamplerMemory {
    shape: SamplerShape,
    params: InPlace,
    accounts: InPlace,
    results: InPlace,
}

impl SamplerMemory {
    /// Memory in which no row has a sampler yet.
    pub fn new(shape: SamplerShape, device: &Device) -> Self {
        let mut params = vec![0; shape.params_words()];
        let rows = layout::row_words(&[], shape.slots);
        params[..rows.len()].copy_from_slice(&rows);
        let upload = |words| InPlace::upload(words, device);
        Self {
            shape,
            params: upload(params),
            accounts: upload(vec![0; shape.slots * shape.account_words()]),
            results: upload(vec![0; shape.slots * layout::RING * RESULT_WORDS]),
        }
    }

    /// Its sizes.
    pub fn shape(&self) -> SamplerShape {
        self.shape
    }

    /// Writes a sampler that [`accepts`](super::accepts) allows into a slot: its parameters and what it
    /// remembers.
    pub fn load(&mut self, slot: usize, sampler: &Sampler) {
        for (at, words) in layout::slot_pieces(sampler, self.shape) {
            self.write_params(self.shape.slot_at(slot) + at, words);
        }
        for (at, words) in layout::account_pieces(sampler, self.shape) {
            let at = slot * self.shape.account_words() + at;
            self.accounts.write(at, words);
        }
    }

    /// Sets how the rows of the next steps are sampled; further rows are padding.
    pub fn set_rows(&mut self, choices: &[RowChoice]) {
        self.write_params(0, layout::row_words(choices, self.shape.slots));
    }

    /// Sets the tokens that a slot may sample while its row is masked.
    pub fn set_mask(&mut self, slot: usize, mask: &TokenMask) {
        let mut words = mask.words().to_vec();
        words.resize(self.shape.vocab.div_ceil(32), 0);
        self.write_params(self.shape.slot_mask_at(slot), words);
    }

    /// The results of all slots, to be read back and then with [`parse`](super::parse).
    pub fn results(&self) -> Tensor<1, Int> {
        self.results.get()
    }

    fn write_params(&mut self, at: usize, words: Vec<u32>) {
        self.params.write(at, words);
    }

    /// The parameters, to read.
    pub(super) fn params(&self) -> Tensor<1, Int> {
        self.params.get()
    }

    /// Accounts and results, to change in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> (Tensor<1, Int>, Tensor<1, Int>) {
        (self.accounts.take(), self.results.take())
    }

    pub(super) fn put(&mut self, accounts: Tensor<1, Int>, results: Tensor<1, Int>) {
        self.accounts.put(accounts);
        self.results.put(results);
    }
}
