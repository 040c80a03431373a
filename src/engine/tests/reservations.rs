//! Places in the queue that are reserved before a request is submitted, and the memory that it holds until it is admitted.

use super::*;
use crate::Error;

/// More than half of what the images of waiting requests may have.
const LARGE_BYTES: u64 = 100 << 20;

fn bench(max_queue: usize) -> Bench {
    let limits = EngineLimits {
        max_queue,
        ..EngineLimits::default()
    };
    Bench::new(FakeModel::new(256, 64, 4), limits)
}

#[test]
fn reserved_places_fill_the_queue() {
    let bench = bench(1);
    let full = || Error::QueueFull { max_queue: 1 };
    // Four run at once, and one waits.
    let mut places: Vec<_> = (0..5).map(|_| bench.handle.reserve(1).unwrap()).collect();
    assert_eq!(bench.handle.reserve(1).unwrap_err(), full());
    let refused = bench.handle.submit(vec![generation(1, 5, 2)]);
    assert_eq!(refused.unwrap_err(), full());
    // Those who have one are not refused.
    let place = places.pop();
    let events = bench
        .handle
        .submit_at(place, vec![generation(2, 5, 2)], None);
    let events = events.unwrap();
    assert_eq!(bench.handle.reserve(1).unwrap_err(), full());
    drop(events);
    let place = bench.handle.reserve(1).unwrap();
    assert_eq!(bench.handle.reserve(1).unwrap_err(), full());
    drop(place);
    drop(places);
    let _batch = bench.handle.reserve(4).unwrap();
    let _waiting = bench.handle.reserve(1).unwrap();
    assert_eq!(bench.handle.reserve(1).unwrap_err(), full());
}

#[test]
fn images_of_waiting_requests_are_bounded() {
    let mut bench = bench(16);
    bench.controls.suspensions.set(1);
    let mut first = bench.handle.reserve(1).unwrap();
    first.hold(LARGE_BYTES).now_or_never().unwrap();
    let mut second = bench.handle.reserve(1).unwrap();
    let mut third = bench.handle.reserve(1).unwrap();
    let mut holding_second = Box::pin(second.hold(LARGE_BYTES));
    let mut holding_third = Box::pin(third.hold(1));
    assert!(holding_second.as_mut().now_or_never().is_none());
    assert!(holding_third.as_mut().now_or_never().is_none(), "in order");
    let request = vec![generation(1, 5, 2)];
    let events = bench.handle.submit_at(Some(first), request, None).unwrap();
    assert!(holding_second.as_mut().now_or_never().is_none(), "queued");
    assert!(bench.step().is_pending());
    assert!(holding_second.as_mut().now_or_never().is_some(), "admitted");
    assert!(holding_third.as_mut().now_or_never().is_some());
    drop((holding_second, holding_third, events));
    // Alone, any request is let through.
    drop((second, third));
    let mut large = bench.handle.reserve(1).unwrap();
    large.hold(u64::MAX).now_or_never().unwrap();
    // A request that is cancelled while it waits frees its memory, although the others are still in the queue.
    let request = vec![generation(2, 5, 2)];
    let events = bench.handle.submit_at(Some(large), request, None).unwrap();
    let mut last = bench.handle.reserve(1).unwrap();
    let mut holding = Box::pin(last.hold(1));
    assert!(holding.as_mut().now_or_never().is_none());
    drop(events);
    assert!(bench.settle().is_pending());
    assert!(holding.as_mut().now_or_never().is_some());
}
