//! Changes to the model between requests: when they run, what waits for them, and that cached
//! prompts are dropped.

use std::cell::RefCell;

use futures_util::FutureExt;

use super::super::ModelAccess;
use super::*;
use crate::Error;

/// A bench and access to its model.
fn bench() -> (Bench, ModelAccess<FakeModel>) {
    let model = FakeModel::new(256, 16, 16);
    let controls = model.controls.clone();
    let sizes = model.limits();
    let limits = EngineLimits {
        max_unread_events: 4,
        ..EngineLimits::default()
    };
    let clock = Rc::new(FakeClock::default());
    let (engine, handle) = Engine::new(model, limits, clock.clone());
    let access = engine.model_access();
    let bench = Bench {
        run: Some(Box::pin(engine.run())),
        handle,
        controls,
        limits: sizes,
        clock,
    };
    (bench, access)
}

/// A change that returns how often the model had been called.
fn note_calls(access: &ModelAccess<FakeModel>) -> impl Future<Output = Result<usize>> {
    let access = access.clone();
    let change = async |model: &mut FakeModel| Ok(model.controls.calls.borrow().len());
    async move { access.change(change).await }
}

#[test]
fn a_change_waits_for_running_requests_and_delays_waiting_ones() {
    let (mut bench, access) = bench();
    let mut first = bench.submit(&generation(1, 3, 40));
    assert!(bench.step().is_pending());
    let mut change = Box::pin(note_calls(&access));
    assert!(
        change.as_mut().now_or_never().is_none(),
        "a request is running"
    );
    let mut second = bench.submit(&generation(2, 3, 2));
    let mut events = Vec::new();
    // The reader is slow, so that the first request runs for a while.
    let at = loop {
        assert!(bench.settle().is_pending());
        let owners = |call: &Call| call.owners.contains(&2);
        if let Some(at) = change.as_mut().now_or_never() {
            break at.unwrap();
        }
        assert!(!bench.calls().iter().any(owners), "no request is admitted");
        events.extend(read_all(&mut first));
    };
    events.extend(read_all(&mut first));
    assert!(matches!(events.last(), Some(Event::Finished { .. })));
    assert_eq!(ids_of(&events).len(), 40);
    let calls = bench.calls();
    let (before, after) = calls.split_at(at);
    assert!(before.iter().all(|call| call.owners == [1]) && !before.is_empty());
    assert!(after.iter().all(|call| call.owners == [2]) && !after.is_empty());
    let last = read_all(&mut second);
    assert!(matches!(last.last(), Some(Event::Finished { .. })));
    assert!(bench.all_memory_is_free());
}

#[test]
fn cached_prompts_are_dropped() {
    let (mut bench, access) = bench();
    let request = generation(1, 100, 2);
    let mut cached = || {
        let mut events = bench.submit(&request);
        assert!(bench.settle().is_pending());
        read_all(&mut events);
        events.cached_prompt_tokens().get()
    };
    assert_eq!([cached(), cached()], [0, 96]);
    let mut change = Box::pin(note_calls(&access));
    assert!(change.as_mut().now_or_never().is_none());
    assert_eq!([cached(), cached()], [0, 96]);
    assert!(change.now_or_never().is_some_and(|made| made.is_ok()));
    assert!(bench.all_memory_is_free());
}

#[test]
fn changes_are_made_in_order_even_if_not_awaited() {
    let (mut bench, access) = bench();
    let order = Rc::new(RefCell::new(Vec::new()));
    for i in 0..3 {
        let order = order.clone();
        let change = access.change(async move |_: &mut FakeModel| {
            order.borrow_mut().push(i);
            super::super::wake::yield_now().await;
            order.borrow_mut().push(i);
            Ok(())
        });
        assert!(change.now_or_never().is_none(), "the engine was not polled");
    }
    assert!(bench.settle().is_pending());
    assert_eq!(*order.borrow(), [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_failed_change_ends_the_engine_only_if_the_device_is_lost() {
    let (mut bench, access) = bench();
    let fail = |error: Error| access.change(async move |_: &mut FakeModel| Err::<(), _>(error));
    let mut failed = Box::pin(fail(Error::UnsupportedModel("no such tensor".into())));
    assert!(failed.as_mut().now_or_never().is_none());
    assert!(bench.settle().is_pending());
    let error = failed.now_or_never().unwrap().unwrap_err();
    assert!(error.to_string().contains("no such tensor"), "{error}");
    let mut events = bench.submit(&generation(1, 3, 2));
    assert!(bench.settle().is_pending());
    assert!(!read_all(&mut events).is_empty());

    let mut lost = Box::pin(fail(Error::DeviceLost("unplugged".into())));
    assert!(lost.as_mut().now_or_never().is_none());
    let mut never = Box::pin(note_calls(&access));
    assert!(never.as_mut().now_or_never().is_none());
    let ended = bench.settle();
    assert!(matches!(ended, Poll::Ready(Err(Error::DeviceLost(_)))));
    bench.run = None;
    for change in [never, Box::pin(note_calls(&access))] {
        let error = change.now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, Error::DeviceLost(_)), "{error}");
    }
    let lost = lost.now_or_never().unwrap().unwrap_err();
    assert!(matches!(lost, Error::DeviceLost(_)), "{lost}");
}

#[test]
fn access_to_the_model_does_not_keep_the_engine_alive() {
    let (bench, access) = bench();
    let Bench { run, handle, .. } = bench;
    drop(handle);
    let ended = run_until_stalled(run.unwrap().as_mut());
    assert!(matches!(ended, Poll::Ready(Ok(()))));
    let change = note_calls(&access).now_or_never();
    let error = change.expect("the change is never made").unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
}
