//! A hooked model fails and waits when it is told to, and only then.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::HookedModel;
use crate::api::Host;
use crate::model::{CausalModel, SequenceKv};
use crate::sample::TokenScore;
use crate::{Error, Result};

#[derive(Default)]
struct Clock {
    slept_ms: RefCell<Vec<u32>>,
}

impl Host for Clock {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        self.slept_ms.borrow_mut().push(duration_ms);
        Box::pin(std::future::ready(()))
    }

    fn warn(&self, _message: &str) {}
}

/// Counts its steps.
#[derive(Default)]
struct Steps(Rc<Cell<usize>>);

impl CausalModel for Steps {
    fn vocab_size(&self) -> usize {
        2
    }

    fn context_tokens(&self) -> usize {
        64
    }

    fn page_tokens(&self) -> usize {
        64
    }

    fn page_count(&self) -> usize {
        1
    }

    fn max_batch(&self) -> usize {
        1
    }

    fn few_tokens(&self) -> usize {
        0
    }

    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        self.feed(kv, tokens).await.map(|_| ())
    }

    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        self.0.set(self.0.get() + 1);
        kv.len_tokens += tokens.len();
        Ok(vec![0.0; 2])
    }

    async fn feed_batch(&mut self, rows: &mut [(&mut SequenceKv, u32)]) -> Result<Vec<Vec<f32>>> {
        self.0.set(self.0.get() + 1);
        Ok(vec![vec![0.0; 2]; rows.len()])
    }

    async fn score(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        next: &[u32],
        _top: usize,
    ) -> Result<Vec<TokenScore>> {
        self.feed(kv, tokens).await?;
        let scores = next.iter().map(|&id| TokenScore {
            id,
            logprob: 0.0,
            raw_logprob: 0.0,
            top: Vec::new(),
        });
        Ok(scores.collect())
    }

    fn copy_page(&mut self, _from: u32, _to: u32) -> Result<()> {
        Ok(())
    }

    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        self.feed(kv, tokens).await?;
        kv.len_tokens += steps - 1;
        Ok(vec![0; steps])
    }
}

#[test]
fn it_fails_once_after_so_many_tokens() {
    let steps = Rc::new(Cell::new(0));
    let (mut model, controls) = HookedModel::new(Steps(steps.clone()), Rc::new(Clock::default()));
    controls.tokens_until_failure.set(Some(4));
    pollster::block_on(async {
        let mut kv = SequenceKv::default();
        model.prefill(&mut kv, &[1, 1]).await.unwrap();
        model.feed_greedy(&mut kv, &[1], 3).await.unwrap();
        model.feed(&mut kv, &[0]).await.unwrap();
        assert_eq!(steps.get(), 3);
        let failed = model.feed(&mut kv, &[0]).await;
        assert!(matches!(failed, Err(Error::Internal(_))), "{failed:?}");
        assert_eq!(steps.get(), 3, "the model was not asked");
        model.feed(&mut kv, &[0]).await.unwrap();
    });
}

#[test]
fn prompts_and_steps_wait_as_told() {
    let clock = Rc::new(Clock::default());
    let (mut model, controls) = HookedModel::new(Steps::default(), clock.clone());
    pollster::block_on(async {
        let mut kv = SequenceKv::default();
        model.feed(&mut kv, &[1]).await.unwrap();
        assert!(clock.slept_ms.borrow().is_empty());
        controls.prefill_delay_ms.set(70);
        controls.step_delay_ms.set(5);
        model.feed(&mut kv, &[1]).await.unwrap();
        model.feed(&mut kv, &[1, 1]).await.unwrap();
        kv.len_tokens = 0;
        model.feed_greedy(&mut kv, &[1], 2).await.unwrap();
        let mut rows = [(&mut kv, 1)];
        model.feed_batch(&mut rows).await.unwrap();
        assert_eq!(*clock.slept_ms.borrow(), [5, 70, 70, 5]);
    });
}
