//! Requests that end by time: at their time limit, and when their readers stall while others wait.

use super::*;
use crate::Error;
use crate::engine::TimeLimit;
use crate::engine::patience::PATIENCE_MS;

/// The end of a request whose reader stalls.
const STALLED: Event = Event::Failed(Error::StalledReader);

/// An engine with pages for 64 tokens, which is also its context, and 8 unread events per request.
fn bench() -> Bench {
    let limits = EngineLimits {
        max_unread_events: 8,
        ..EngineLimits::default()
    };
    Bench::new(FakeModel::new(64, 16, 4), limits)
}

/// A request that may need all pages.
fn large(owner: u32) -> Generation {
    generation(owner, 40, 24)
}

fn candidates(owner: u32, count: u32) -> Generation {
    Generation {
        candidates: count,
        sampling: sampled(3),
        ..generation(owner, 6, 50)
    }
}

#[test]
fn the_candidates_of_a_request_share_its_unread_events() {
    for (max_unread_events, count) in [(256, 32), (256, 128), (32, 4), (9, 3), (8, 3)] {
        let limits = EngineLimits {
            max_unread_events,
            ..EngineLimits::default()
        };
        let mut bench = Bench::new(FakeModel::new(64, 4096, 4), limits);
        let request = candidates(1, count);
        let mut events = bench.submit_all(std::slice::from_ref(&request));
        assert!(bench.settle().is_pending());
        let unread: Vec<usize> = events[0].iter_mut().map(|it| read_all(it).len()).collect();
        // A place per candidate is reserved for its last event. Fewer than a place for each are left.
        let most = max_unread_events - count as usize;
        let sum = unread.iter().sum::<usize>();
        assert!(sum <= most && sum + count as usize > most, "{sum}, {count}");
        assert!(unread.iter().all(|unread| *unread > 0), "of {count}");
        let found = bench.read_to_end(&mut events);
        let expected = expected_all(&[request], 64);
        for ((found, expected), read) in found[0].iter().zip(&expected[0]).zip(unread) {
            assert_eq!(found, &expected[read..]);
        }
    }
}

#[test]
fn reading_one_candidate_resumes_another() {
    let mut bench = bench();
    let request = candidates(1, 2);
    let mut events = bench.submit_all(std::slice::from_ref(&request)).remove(0);
    let mut second = events.remove(1);
    let first = bench.read_to_end(&mut [events]).remove(0).remove(0);
    let expected = expected_all(&[request], 64).remove(0);
    assert_eq!(first, expected[0]);
    // All places are those of the second one now, but for the last event's.
    assert_eq!(read_all(&mut second), expected[1][..7]);
}

#[test]
fn a_stalled_request_ends_when_others_wait_for_its_pages() {
    let mut bench = bench();
    let mut stalled = bench.submit(&large(1));
    assert!(bench.settle().is_pending());
    bench.clock.advance(10 * PATIENCE_MS);
    assert!(bench.settle().is_pending());
    assert_eq!(bench.clock.timers(), 0, "nobody waits for it");
    assert_eq!(bench.handle.active_generations(), 1);

    let mut honest = bench.submit(&large(2));
    assert!(bench.settle().is_pending());
    bench.clock.advance(PATIENCE_MS - 1);
    assert!(bench.settle().is_pending());
    assert_eq!(read_all(&mut honest), []);
    bench.clock.advance(1);
    let found = bench.read_to_end(&mut [vec![honest]]).remove(0).remove(0);
    assert_eq!(found, expected_events(&large(2), 64));
    assert!(bench.all_memory_is_free());
    let mut events = expected_events(&large(1), 64)[..7].to_vec();
    events.push(STALLED);
    assert_eq!(
        read_all(&mut stalled),
        events,
        "found when it is read again"
    );
}

#[test]
fn a_stalled_request_of_several_candidates_ends_too() {
    let mut bench = bench();
    let mut stalled = bench.submit_all(&[candidates(1, 6)]).remove(0);
    assert!(bench.settle().is_pending());
    let mut honest = vec![vec![bench.submit(&large(2))]];
    assert!(bench.settle().is_pending());
    assert_eq!(bench.read_to_end(&mut honest)[0][0], []);
    bench.clock.advance(PATIENCE_MS);
    assert_eq!(
        bench.read_to_end(&mut honest)[0][0],
        expected_events(&large(2), 64)
    );
    for events in &mut stalled {
        assert_eq!(read_all(events).last(), Some(&STALLED));
    }
}

#[test]
fn states_are_waited_for_too() {
    let model = FakeModel::new(64, 64, 4).with_states(2);
    let limits = EngineLimits {
        max_unread_events: 8,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(model, limits);
    let stalled = [1, 2].map(|owner| bench.submit(&generation(owner, 6, 20)));
    let mut honest = vec![vec![bench.submit(&generation(3, 6, 20))]];
    assert_eq!(bench.read_to_end(&mut honest)[0][0], []);
    bench.clock.advance(PATIENCE_MS);
    assert_eq!(
        bench.read_to_end(&mut honest)[0][0],
        expected_events(&generation(3, 6, 20), 64)
    );
    for mut events in stalled {
        assert_eq!(read_all(&mut events).last(), Some(&STALLED));
    }
}

#[test]
fn a_change_of_the_model_is_waited_for() {
    let model = FakeModel::new(64, 16, 4);
    let clock = Rc::new(FakeClock::default());
    let limits = EngineLimits {
        max_unread_events: 8,
        ..EngineLimits::default()
    };
    let (engine, handle) = Engine::new(model, limits, clock.clone());
    let access = engine.model_access();
    let mut run = Box::pin(engine.run());
    let mut stalled = handle.submit(vec![large(1)]).unwrap().remove(0).remove(0);
    assert!(run_until_stalled(run.as_mut()).is_pending());
    let mut change = Box::pin(access.change(async |_: &mut FakeModel| Ok(())));
    assert!(change.as_mut().now_or_never().is_none());
    assert!(run_until_stalled(run.as_mut()).is_pending());
    clock.advance(PATIENCE_MS);
    assert!(run_until_stalled(run.as_mut()).is_pending());
    assert_eq!(change.now_or_never(), Some(Ok(())));
    assert_eq!(read_all(&mut stalled).last(), Some(&STALLED));
}

#[test]
fn a_slow_reader_keeps_others_waiting_no_longer_than_a_stalled_one() {
    for (read_every_ms, ends_whole) in [
        (100, true),
        (PATIENCE_MS / 4, false),
        (PATIENCE_MS - 1, false),
    ] {
        let mut bench = bench();
        let mut slow = bench.submit(&large(1));
        assert!(bench.settle().is_pending());
        let mut honest = bench.submit(&large(2));
        assert!(bench.settle().is_pending());
        let (mut waited_ms, mut found, mut of_honest) = (0, vec![], vec![]);
        while of_honest.is_empty() {
            bench.clock.advance(read_every_ms);
            waited_ms += read_every_ms;
            assert!(bench.settle().is_pending());
            found.extend(read(&mut slow, 1));
            assert!(bench.settle().is_pending());
            of_honest.extend(read_all(&mut honest));
        }
        assert!(waited_ms < PATIENCE_MS + read_every_ms, "{waited_ms} ms");
        found.extend(read_all(&mut slow));
        assert_eq!(found.last() != Some(&STALLED), ends_whole);
        of_honest.extend(bench.read_to_end(&mut [vec![honest]]).remove(0).remove(0));
        assert_eq!(of_honest, expected_events(&large(2), 64));
    }
}

#[test]
fn steps_for_a_request_restore_the_patience_with_it() {
    let mut bench = bench();
    let mut slow = bench.submit(&large(1));
    assert!(bench.settle().is_pending());
    let mut honest = vec![vec![bench.submit(&large(2))]];
    assert!(bench.settle().is_pending());
    // Each token takes a second, so that three seconds are allowed to read one.
    bench.controls.suspensions.set(1);
    let mut found = vec![];
    while found.len() < 25 {
        bench.clock.advance(3000);
        found.extend(read(&mut slow, 1));
        assert!(bench.step().is_pending());
        bench.clock.advance(1000);
        assert!(bench.settle().is_pending());
    }
    assert_eq!(found, expected_events(&large(1), 64));
    assert_eq!(
        bench.read_to_end(&mut honest)[0][0],
        expected_events(&large(2), 64)
    );
}

#[test]
fn a_reader_that_reads_all_is_never_stalled() {
    let mut bench = bench();
    let mut first = bench.submit(&large(1));
    let mut second = vec![vec![bench.submit(&large(2))]];
    let mut found = vec![];
    while found.len() < 25 {
        bench.clock.advance(PATIENCE_MS / 12);
        assert!(bench.settle().is_pending());
        found.extend(read_all(&mut first));
    }
    assert_eq!(found, expected_events(&large(1), 64));
    assert_eq!(
        bench.read_to_end(&mut second)[0][0],
        expected_events(&large(2), 64)
    );
}

#[test]
fn a_request_that_ended_unread_holds_nothing() {
    let mut bench = bench();
    let short = generation(1, 40, 6);
    let mut unread = bench.submit(&short);
    let mut honest = vec![vec![bench.submit(&large(2))]];
    assert_eq!(
        bench.read_to_end(&mut honest)[0][0],
        expected_events(&large(2), 64)
    );
    bench.clock.advance(10 * PATIENCE_MS);
    assert!(bench.settle().is_pending());
    assert_eq!(read_all(&mut unread), expected_events(&short, 64));
}

#[test]
fn requests_end_at_their_time_limit_although_nobody_reads() {
    let limit = TimeLimit {
        end_ms: 5000,
        timeout_ms: 5000,
    };
    let mut bench = bench();
    // One is paused, and the others wait in the queue.
    let requests = [1, 2, 3].map(|owner| {
        let request = vec![large(owner)];
        bench.handle.submit_at(None, request, Some(limit)).unwrap()
    });
    assert!(bench.settle().is_pending());
    bench.clock.advance(4999);
    assert!(bench.settle().is_pending());
    assert_eq!(bench.handle.active_generations(), 3);
    bench.clock.advance(1);
    assert!(bench.settle().is_pending());
    assert_eq!(bench.handle.active_generations(), 0);
    assert!(bench.all_memory_is_free());
    let late = Event::Failed(limit.error());
    let told = expected_events(&large(1), 64)[..7].to_vec();
    let mut found = requests.map(|mut events| read_all(&mut events[0][0]));
    assert_eq!(found[0].pop(), Some(late.clone()));
    assert_eq!(found[0], told);
    assert_eq!(found[1..], [[late.clone()], [late]]);
    assert_eq!(bench.clock.timers(), 0);
}

#[test]
fn a_request_without_room_does_not_block_the_queue() {
    let limits = EngineLimits {
        max_unread_events: 2,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 16, 4), limits);
    // The scores of its prompt are sent at once, and nobody reads them.
    let mut full = bench.submit(&Generation {
        prompt_scores: Some(1),
        ..generation(1, 1, 5)
    });
    let mut others = vec![vec![bench.submit(&generation(2, 6, 5))]];
    assert_eq!(
        bench.read_to_end(&mut others)[0][0],
        expected_events(&generation(2, 6, 5), 64)
    );
    assert_eq!(read_all(&mut full).len(), 1);
    assert!(bench.settle().is_pending());
    assert!(!read_all(&mut full).is_empty());
}
