//! Order, batches, cancellation and failures, with a model whose vectors tell how they were computed.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use futures_util::future::{Either, join, select};

use super::{EmbeddingEngine, EmbeddingHandle, EmbeddingInput, EmbeddingLimits, EmbeddingModel};
use crate::engine::wake::yield_now;
use crate::{Error, RequestFault, Result};

const LIMITS: EmbeddingLimits = EmbeddingLimits {
    vocab_size: 100,
    context_tokens: 6,
    width: 2,
    batch_tokens: 4,
    batch_inputs: 3,
};

#[derive(Default)]
struct Record {
    /// The inputs of each call that began.
    calls: RefCell<Vec<Vec<Vec<u32>>>>,
    ended: Cell<usize>,
    failure: RefCell<Option<Error>>,
    held: Cell<bool>,
}

/// The vector of an input is its sum and its length.
struct Sums(Rc<Record>);

impl EmbeddingModel for Sums {
    fn embedding_limits(&self) -> EmbeddingLimits {
        LIMITS
    }

    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>> {
        let inputs = inputs.iter().map(|input| input.ids.clone());
        let call: Vec<Vec<u32>> = inputs.collect();
        self.0.calls.borrow_mut().push(call.clone());
        yield_now().await;
        while self.0.held.get() {
            yield_now().await;
        }
        self.0.ended.set(self.0.ended.get() + 1);
        if let Some(error) = self.0.failure.take() {
            return Err(error);
        }
        let vector = |input: &Vec<u32>| vec![input.iter().sum::<u32>() as f32, input.len() as f32];
        Ok(call.iter().map(vector).collect())
    }
}

/// Runs `test` beside an engine with a queue of two.
fn with_engine<T>(test: impl AsyncFnOnce(EmbeddingHandle, Rc<Record>) -> T) -> (T, Option<Error>) {
    let record = Rc::new(Record::default());
    let (engine, handle) = EmbeddingEngine::new(Sums(record.clone()), 2);
    let (ended, value) = pollster::block_on(join(engine.run(), test(handle, record)));
    (value, ended.err())
}

async fn turns(count: usize) {
    for _ in 0..count {
        yield_now().await;
    }
}

#[test]
fn inputs_are_computed_in_batches_and_answered_in_order() {
    let ((), ended) = with_engine(async |handle, record| {
        let inputs = vec![
            vec![1, 2],
            vec![3],
            vec![4],
            vec![5; 6],
            vec![6],
            vec![7],
            vec![8],
            vec![9],
        ];
        let vectors = handle.submit(inputs).unwrap().vectors().await.unwrap();
        let firsts: Vec<f32> = vectors.iter().map(|vector| vector[0]).collect();
        assert_eq!(firsts, [3.0, 3.0, 4.0, 30.0, 6.0, 7.0, 8.0, 9.0]);
        let sizes: Vec<usize> = record.calls.borrow().iter().map(Vec::len).collect();
        assert_eq!(sizes, [3, 1, 3, 1]);
    });
    assert_eq!(ended, None);
}

#[test]
fn a_short_request_does_not_wait_for_all_inputs_of_a_long_one() {
    with_engine(async |handle, record| {
        let long = handle.submit(vec![vec![1; 4]; 5]).unwrap();
        let short = handle.submit(vec![vec![2]]).unwrap();
        short.vectors().await.unwrap();
        assert!(record.ended.get() < 5, "{} calls", record.ended.get());
        assert_eq!(long.vectors().await.unwrap().len(), 5);
    });
}

#[test]
fn what_the_model_cannot_take_is_refused_by_name() {
    with_engine(async |handle, _| {
        for (inputs, expected) in [
            (vec![vec![1], vec![]], RequestFault::InvalidValue),
            (vec![vec![100]], RequestFault::OutOfRange),
            (vec![vec![1; 7]], RequestFault::ContextLengthExceeded),
        ] {
            match handle.submit(inputs).unwrap_err() {
                Error::Request { fault, param, .. } => {
                    assert_eq!((fault, param.as_deref()), (expected, Some("input")));
                }
                other => panic!("{other}"),
            }
        }
        assert!(handle.submit(Vec::<Vec<u32>>::new()).is_err());
        assert!(handle.submit(vec![vec![99; 6]]).is_ok());
    });
}

#[test]
fn a_full_queue_is_refused_until_a_request_is_dropped() {
    with_engine(async |handle, record| {
        record.held.set(true);
        let running = handle.submit(vec![vec![1]]).unwrap();
        turns(3).await;
        let waiting = [1, 2].map(|id| handle.submit(vec![vec![id]]).unwrap());
        let full = handle.submit(vec![vec![3]]).unwrap_err();
        assert_eq!(full, Error::QueueFull { max_queue: 2 });
        drop(waiting);
        let next = handle.submit(vec![vec![3]]).unwrap();
        record.held.set(false);
        running.vectors().await.unwrap();
        next.vectors().await.unwrap();
        assert_eq!(*record.calls.borrow(), [[[1]], [[3]]]);
    });
}

#[test]
fn a_dropped_request_stops_in_the_middle_of_a_call() {
    with_engine(async |handle, record| {
        record.held.set(true);
        let running = handle.submit(vec![vec![1]]).unwrap();
        let next = handle.submit(vec![vec![2]]).unwrap();
        turns(3).await;
        assert_eq!(handle.active_requests(), 2);
        drop(running);
        turns(3).await;
        // The call for the dropped request never ends; the next one has begun.
        assert_eq!(record.ended.get(), 0);
        assert_eq!(record.calls.borrow().len(), 2);
        record.held.set(false);
        assert_eq!(next.vectors().await.unwrap(), [[2.0, 1.0]]);
        assert_eq!(handle.active_requests(), 0);
    });
}

#[test]
fn a_failure_concerns_its_request_and_a_lost_device_all() {
    let ((), ended) = with_engine(async |handle, record| {
        let fail = |error| *record.failure.borrow_mut() = Some(error);
        fail(Error::OutOfMemory("full".into()));
        let failed = handle.submit(vec![vec![1]]).unwrap().vectors().await;
        assert_eq!(failed, Err(Error::OutOfMemory("full".into())));
        assert!(
            handle
                .submit(vec![vec![1]])
                .unwrap()
                .vectors()
                .await
                .is_ok()
        );

        fail(Error::DeviceLost("gone".into()));
        let requests = [1, 2].map(|id| handle.submit(vec![vec![id]]).unwrap());
        for request in requests {
            assert_eq!(
                request.vectors().await,
                Err(Error::DeviceLost("gone".into()))
            );
        }
        assert!(matches!(
            handle.submit(vec![vec![1]]),
            Err(Error::DeviceLost(_))
        ));
    });
    assert_eq!(ended, Some(Error::DeviceLost("gone".into())));
}

#[test]
fn a_stopped_engine_fails_what_waits() {
    let record = Rc::new(Record::default());
    let (engine, handle) = EmbeddingEngine::new(Sums(record.clone()), 2);
    record.held.set(true);
    let request = handle.submit(vec![vec![1]]).unwrap();
    let mut run = Box::pin(engine.run());
    pollster::block_on(poll_fn(|context| {
        let _ = run.as_mut().poll(context);
        Poll::Ready(())
    }));
    drop(run);
    let (vectors, patience) = (pin!(request.vectors()), pin!(turns(3)));
    match pollster::block_on(select(vectors, patience)) {
        Either::Left((result, _)) => assert!(matches!(result, Err(Error::Internal(_)))),
        Either::Right(_) => panic!("the request still waits"),
    }
    assert!(matches!(
        handle.submit(vec![vec![1]]),
        Err(Error::Internal(_))
    ));
}
