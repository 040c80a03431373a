//! A tensor that ops change in place.

use burn::tensor::{Device, Int, Tensor};

use super::write_words::write_words;
use crate::device::upload_words;

/// Words on a device that ops change in place. An op takes the tensor and puts it back: the twins write
/// in place only while nothing else holds it. A clone on the GPU shares the memory.
#[derive(Debug, Clone)]
pub struct InPlace(Option<Tensor<1, Int>>);

impl InPlace {
    /// Wraps a tensor.
    pub fn new(words: Tensor<1, Int>) -> Self {
        Self(Some(words))
    }

    /// Uploads words.
    pub fn upload(words: Vec<u32>, device: &Device) -> Self {
        let len = words.len();
        Self::new(upload_words(words, [len], device))
    }

    /// The tensor, to read.
    ///
    /// # Panics
    /// If an op has the tensor.
    pub fn get(&self) -> Tensor<1, Int> {
        self.0.clone().expect("every op puts back what it takes")
    }

    /// The tensor, to change in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> Tensor<1, Int> {
        self.0.take().expect("every op puts back what it takes")
    }

    pub(super) fn put(&mut self, words: Tensor<1, Int>) {
        self.0 = Some(words);
    }

    /// Overwrites words from word `at` on.
    pub fn write(&mut self, at: usize, words: Vec<u32>) {
        let written = write_words(self.take(), at, words);
        self.put(written);
    }
}
