//! A hooked model fails and waits only on command.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::HookedModel;
use crate::api::Host;
use crate::engine::embed::{EmbeddingInput, EmbeddingLimits, EmbeddingModel};
use crate::engine::{
    CausalModel, Chooser, Input, MemoryCopy, ModelLimits, Row, SequenceMemory, StepOutput,
};
use crate::sample::TokenScore;
use crate::{Error, Result};

#[derive(Default)]
struct Clock {
    slept_ms: RefCell<Vec<u32>>,
}

impl crate::engine::Clock for Clock {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        self.slept_ms.borrow_mut().push(duration_ms);
        Box::pin(std::future::ready(()))
    }
}

impl Host for Clock {
    fn warn(&self, _message: &str) {}
}

/// Counts its steps.
#[derive(Default)]
struct Steps(Rc<Cell<usize>>);

impl CausalModel for Steps {
    fn limits(&self) -> ModelLimits {
        ModelLimits {
            vocab_size: 2,
            context_tokens: 64,
            page_tokens: 64,
            page_count: 1,
            max_batch: 1,
            few_tokens: 0,
            state_slots: 0,
            embedding_width: None,
            whole_images: false,
        }
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        self.0.set(self.0.get() + 1);
        memory.len_tokens += input.ids().len();
        Ok(())
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        self.0.set(self.0.get() + 1);
        for Row { memory, input } in rows.iter_mut() {
            memory.len_tokens += input.ids().len() + chooser.steps() - 1;
        }
        Ok(StepOutput::Logits(vec![vec![0.0; 2]; rows.len()]))
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        _next: &[u32],
        _top: usize,
    ) -> Result<Vec<TokenScore>> {
        self.prefill(memory, Input::tokens(tokens)).await?;
        Ok(Vec::new())
    }

    fn copy(&mut self, _copy: MemoryCopy) -> Result<()> {
        Ok(())
    }
}

impl EmbeddingModel for Steps {
    fn embedding_limits(&self) -> EmbeddingLimits {
        EmbeddingLimits {
            vocab_size: 2,
            context_tokens: 64,
            width: 1,
            batch_tokens: 64,
            batch_inputs: 8,
        }
    }

    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>> {
        self.0.set(self.0.get() + 1);
        Ok(vec![vec![0.0]; inputs.len()])
    }
}

/// A step of one row.
async fn step(
    model: &mut HookedModel<Steps>,
    memory: &mut SequenceMemory,
    tokens: &[u32],
    chooser: Chooser<'_>,
) -> Result<StepOutput> {
    let input = Input::tokens(tokens);
    model.step(&mut [Row { memory, input }], chooser).await
}

#[test]
fn it_fails_once_after_the_configured_tokens() {
    let steps = Rc::new(Cell::new(0));
    let (mut model, controls) = HookedModel::new(Steps(steps.clone()), Rc::new(Clock::default()));
    controls.tokens_until_failure.set(Some(4));
    pollster::block_on(async {
        let mut memory = SequenceMemory::default();
        model
            .prefill(&mut memory, Input::tokens(&[1, 1]))
            .await
            .unwrap();
        step(&mut model, &mut memory, &[1], Chooser::Greedy { steps: 3 })
            .await
            .unwrap();
        step(&mut model, &mut memory, &[0], Chooser::Host)
            .await
            .unwrap();
        assert_eq!(steps.get(), 3);
        let failed = step(&mut model, &mut memory, &[0], Chooser::Host).await;
        assert!(matches!(failed, Err(Error::Internal(_))), "{failed:?}");
        assert_eq!(steps.get(), 3, "the model was not called");
        step(&mut model, &mut memory, &[0], Chooser::Host)
            .await
            .unwrap();
    });
}

#[test]
fn prefill_and_decode_steps_wait_for_their_delays() {
    let clock = Rc::new(Clock::default());
    let (mut model, controls) = HookedModel::new(Steps::default(), clock.clone());
    pollster::block_on(async {
        let mut memory = SequenceMemory::default();
        step(&mut model, &mut memory, &[1], Chooser::Host)
            .await
            .unwrap();
        assert!(clock.slept_ms.borrow().is_empty());
        controls.prefill_delay_ms.set(70);
        controls.step_delay_ms.set(5);
        step(&mut model, &mut memory, &[1], Chooser::Host)
            .await
            .unwrap();
        step(&mut model, &mut memory, &[1, 1], Chooser::Host)
            .await
            .unwrap();
        memory.len_tokens = 0;
        step(&mut model, &mut memory, &[1], Chooser::Greedy { steps: 2 })
            .await
            .unwrap();
        step(&mut model, &mut memory, &[1], Chooser::Host)
            .await
            .unwrap();
        assert_eq!(*clock.slept_ms.borrow(), [5, 70, 70, 5]);
    });
}

#[test]
fn embedding_waits_and_fails_on_command() {
    let steps = Rc::new(Cell::new(0));
    let clock = Rc::new(Clock::default());
    let (mut model, controls) = HookedModel::new(Steps(steps.clone()), clock.clone());
    controls.prefill_delay_ms.set(70);
    controls.tokens_until_failure.set(Some(2));
    pollster::block_on(async {
        let [a, b] = [0, 1].map(|id| EmbeddingInput::from(vec![id]));
        assert_eq!(model.embed(&[&a, &b]).await.unwrap().len(), 2);
        let failed = model.embed(&[&a]).await;
        assert!(matches!(failed, Err(Error::Internal(_))), "{failed:?}");
        assert_eq!(steps.get(), 1, "the model was not called");
        model.embed(&[&a]).await.unwrap();
        assert_eq!(*clock.slept_ms.borrow(), [70, 70, 70]);
    });
}
