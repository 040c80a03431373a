//! Replaces the decoder of the steps by one with other adapters.

use super::{
    Steps,
    record::step_kernels,
    sizes::{WarmUp, warm_rows},
};
use crate::{Result, model::lora::Adapted, ops::Kernel};

impl Steps {
    /// Replaces the decoder by another one of the same model: drops the recorded graphs and records
    /// those of [`warm_up`](Self::warm_up) again.
    ///
    /// # Errors
    /// Fails when a kernel is refused; the decoder is unchanged then.
    pub async fn readapt(&mut self, mut adapted: Adapted) -> Result<()> {
        // Graphs stay valid: there were no adapters and there are none now.
        if !self.has_adapters && !adapted.has_adapters {
            return Ok(());
        }
        let warm = warm_rows(self.variant, WarmUp::Prompts).iter().copied();
        let recorded: Vec<usize> = warm.filter(|rows| self.graphs.contains_key(rows)).collect();
        let sampled = self.sampled.contains_key(&1);
        if !recorded.is_empty() {
            let compiled = self.kernels(&recorded);
            self.compiled.extend(compiled);
        }
        self.swap(&mut adapted);
        let result = self.record_again(&recorded, sampled).await;
        if result.is_err() {
            self.swap(&mut adapted);
            // If this fails too, graphs are recorded when they are needed.
            let _ = self.record_again(&recorded, sampled).await;
        }
        result
    }

    /// Swaps the decoder and drops the graphs of the former one.
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
            let mut kernels = self.kernels(rows);
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

    /// WGSL of the kernels of steps with these numbers of rows; none where nothing is recorded.
    pub(super) fn kernels(&self, rows: &[usize]) -> Vec<String> {
        if self.device.recorder().is_none() {
            return Vec::new();
        }
        let kernels = step_kernels(
            &self.decoder,
            self.given.as_ref(),
            &self.memory,
            self.device.tensors(),
            rows,
        );
        kernels.iter().map(Kernel::wgsl).collect()
    }
}
