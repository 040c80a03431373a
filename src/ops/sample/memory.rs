//! The device memory of the sampler kernels, and how the host writes it.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::layout::{self, RESULT_WORDS, RowChoice, SamplerShape};
use crate::ops::write_words;
use crate::sample::{Sampler, TokenMask};

/// Parameters, accounts and results of as many samplers as there are slots. A clone on the GPU is
/// the same memory.
#[derive(Debug, Clone)]
pub struct SamplerMemory {
    shape: SamplerShape,
    params: Option<Tensor<1, Int>>,
    accounts: Option<Tensor<1, Int>>,
    results: Option<Tensor<1, Int>>,
}

impl SamplerMemory {
    /// Memory in which no row has a sampler yet.
    pub fn new(shape: SamplerShape, device: &Device) -> Self {
        let mut params = vec![0; shape.params_words()];
        let rows = layout::row_words(&[], shape.slots);
        params[..rows.len()].copy_from_slice(&rows);
        let upload = |words: Vec<u32>| {
            let len = words.len();
            Some(Tensor::from_data(
                TensorData::new(words, [len]),
                (device, DType::U32),
            ))
        };
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
            let accounts = self.accounts.take();
            let accounts = accounts.expect("put back by every op that takes it");
            let at = slot * self.shape.account_words() + at;
            self.accounts = Some(write_words(accounts, at, words));
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
        let results = self.results.clone();
        results.expect("put back by every op that takes it")
    }

    fn write_params(&mut self, at: usize, words: Vec<u32>) {
        let params = self.params.take();
        let params = params.expect("put back by every op that takes it");
        self.params = Some(write_words(params, at, words));
    }

    /// Parameters, accounts and results, to be changed and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> (Tensor<1, Int>, Tensor<1, Int>, Tensor<1, Int>) {
        let mut taken = [&mut self.params, &mut self.accounts, &mut self.results]
            .map(|tensor| tensor.take().expect("put back by every op that takes it"))
            .into_iter();
        let mut next = || taken.next().expect("three of three");
        (next(), next(), next())
    }

    pub(super) fn put(
        &mut self,
        params: Tensor<1, Int>,
        accounts: Tensor<1, Int>,
        results: Tensor<1, Int>,
    ) {
        self.params = Some(params);
        self.accounts = Some(accounts);
        self.results = Some(results);
    }
}
