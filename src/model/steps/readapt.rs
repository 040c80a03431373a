//! Steps of a decoder that gets other adapters.

use super::{Steps, first_kernels, warm_rows};
use crate::{Result, model::lora::Adapted, ops::Kernel};

impl Steps {
    /// Computes by another decoder of the same model from now on: forgets what was recorded and records
    /// again what of it [`warm_up`](Self::warm_up) does.
    ///
    /// # Errors
    /// When a kernel is refused; all is as it was then.
    pub async fn readapt(&mut self, mut adapted: Adapted) -> Result<()> {
        // What is recorded stays: nothing was added, and nothing is to be.
        if !self.has_adapters && !adapted.has_adapters {
            return Ok(());
        }
        let warm = warm_rows(self.variant).iter().copied();
        let recorded: Vec<usize> = warm.filter(|rows| self.graphs.contains_key(rows)).collect();
        let sampled = self.sampled.contains_key(&1);
        if !recorded.is_empty() {
            let compiled = self.kernels();
            self.compiled.extend(compiled);
        }
        self.swap(&mut adapted);
        let result = self.record_again(&recorded, sampled).await;
        if result.is_err() {
            self.swap(&mut adapted);
            // Should that fail too, they are recorded when they are needed.
            let _ = self.record_again(&recorded, sampled).await;
        }
        result
    }

    /// Exchanges the decoder, and drops what was recorded of the former one.
    fn swap(&mut self, adapted: &mut Adapted) {
        std::mem::swap(&mut self.decoder, &mut adapted.decoder);
        std::mem::swap(&mut self.has_adapters, &mut adapted.has_adapters);
        self.ready = None;
        self.greedy = None;
        self.graphs.clear();
        self.sampled.clear();
        self.sampled_steps.clear();
    }

    async fn record_again(&mut self, rows: &[usize], sampled: bool) -> Result<()> {
        if !rows.is_empty() {
            let mut kernels = self.kernels();
            kernels.retain(|kernel| self.compiled.insert(kernel.clone()));
            self.device.compile_ahead(kernels).await;
        }
        for &rows in rows {
            self.record(rows).await?;
        }
        if sampled {
            self.prepare_sampled(1).await?;
        }
        self.device.sync().await
    }

    /// The texts of the kernels that [`warm_up`](Self::warm_up) records; none where it records nothing.
    fn kernels(&self) -> Vec<String> {
        if self.device.recorder().is_none() {
            return Vec::new();
        }
        let tensors = self.device.tensors();
        let kernels = first_kernels(&self.decoder, &self.kv, self.variant, tensors);
        kernels.iter().map(Kernel::wgsl).collect()
    }
}
