//! The order of requests, the queue, back-pressure, scarce pages, wake-ups and the engine's end.

use super::*;
use crate::Error;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;

/// The owners in the order of their first calls.
fn owners(bench: &Bench) -> Vec<u32> {
    let mut owners = vec![];
    for owner in bench.calls().into_iter().flat_map(|call| call.owners) {
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    owners
}

#[test]
fn first_come_first_served() {
    let mut bench = Bench::new(FakeModel::new(64, 64, 4), EngineLimits::default());
    let generations = [3, 1, 2].map(|owner| generation(owner, 6, 20));
    let mut events = generations
        .each_ref()
        .map(|generation| bench.submit(generation));
    assert_eq!(bench.handle.active_generations(), 3);
    assert!(bench.settle().is_pending());
    assert_eq!(owners(&bench), [3, 1, 2]);
    for (events, generation) in events.iter_mut().zip(&generations) {
        assert_eq!(read_all(events), expected_events(generation, 64));
    }
}

#[test]
fn the_queue_is_bounded_and_those_that_run_do_not_count() {
    let limits = EngineLimits {
        max_queue: 2,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 64, 4), limits);
    let full = Err(Error::QueueFull { max_queue: 2 });
    // Before and after the engine is first polled: four run, two wait.
    let mut kept: Vec<Events> = (0..6)
        .map(|owner| bench.submit(&generation(owner, 6, 20)))
        .collect();
    assert_eq!(
        bench.handle.submit(vec![generation(9, 6, 20)]).map(drop),
        full
    );
    assert!(bench.step().is_pending());
    assert_eq!(
        bench.handle.submit(vec![generation(9, 6, 20)]).map(drop),
        full
    );
    assert!(bench.settle().is_pending());
    kept.push(bench.submit(&generation(9, 6, 20)));
    assert!(bench.settle().is_pending());
    for (mut events, owner) in kept.into_iter().zip([0, 1, 2, 3, 4, 5, 9]) {
        assert_eq!(
            read_all(&mut events),
            expected_events(&generation(owner, 6, 20), 64)
        );
    }
}

#[test]
fn no_queue_at_all_still_fills_the_batch() {
    let limits = EngineLimits {
        max_queue: 0,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 64, 4), limits);
    let requests = [(1, 1), (2, 2), (3, 3)].map(|(owner, candidates)| Generation {
        candidates,
        ..generation(owner, 6, 20)
    });
    let mut kept = requests
        .each_ref()
        .map(|request| bench.submit_all(std::slice::from_ref(request)));
    for _ in 0..2 {
        // Six candidates fill four places, admitted or not.
        assert_eq!(
            bench.handle.submit(vec![generation(4, 6, 20)]).unwrap_err(),
            Error::QueueFull { max_queue: 0 }
        );
        assert!(bench.step().is_pending());
    }
    for (events, request) in kept.iter_mut().zip(&requests) {
        let expected = expected_all(std::slice::from_ref(request), 64);
        assert_eq!(bench.read_to_end(events), expected);
    }
}

#[test]
fn as_many_at_once_as_run_and_wait() {
    let mut model = FakeModel::new(64, 64, 4);
    model.max_batch = 8;
    let mut bench = Bench::new(model, EngineLimits::default());
    let requests: Vec<_> = (0..24).map(|owner| generation(owner, 6, 20)).collect();
    let mut events: Vec<Events> = requests.iter().map(|it| bench.submit(it)).collect();
    assert_eq!(
        bench
            .handle
            .submit(vec![generation(30, 6, 20)])
            .unwrap_err(),
        Error::QueueFull { max_queue: 16 }
    );
    assert!(bench.settle().is_pending());
    for (events, request) in events.iter_mut().zip(&requests) {
        assert_eq!(read_all(events), expected_events(request, 64));
    }
}

#[test]
fn a_lagging_reader_pauses_its_choice_and_lets_others_run() {
    for sampling in [greedy(), sampled(4)] {
        let mut bench = Bench::new(FakeModel::new(1024, 256, 4), EngineLimits::default());
        let lagging = Generation {
            sampling,
            ..generation(1, 6, 600)
        };
        let mut slow = bench.submit(&lagging);
        let other = generation(2, 6, 100);
        let mut quick = bench.submit(&other);
        assert!(bench.settle().is_pending());
        assert_eq!(owners(&bench), [1, 2]);
        assert_eq!(read_all(&mut quick), expected_events(&other, 1024));
        // 255 tokens are unread, and one place is reserved for the last event.
        let mut found = read(&mut slow, 255);
        assert_eq!(found.len(), 255);
        assert!(read_all(&mut slow).is_empty());
        assert!(!bench.all_memory_is_free());
        while found.len() < 601 {
            assert!(bench.settle().is_pending());
            let more = read_all(&mut slow);
            assert!((1..=256).contains(&more.len()));
            found.extend(more);
        }
        assert_eq!(found, expected_events(&lagging, 1024));
        assert!(bench.all_memory_is_free());
    }
}

#[test]
fn one_read_event_resumes_one_token() {
    let limits = EngineLimits {
        max_unread_events: 5,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 64, 4), limits);
    let mut events = bench.submit(&generation(1, 6, 20));
    assert!(bench.settle().is_pending());
    let mut found = vec![];
    for _ in 0..16 {
        found.extend(read(&mut events, 1));
        assert!(bench.settle().is_pending());
    }
    found.extend(read_all(&mut events));
    assert_eq!(found, expected_events(&generation(1, 6, 20), 64));
}

#[test]
fn scarce_pages_delay_later_requests_and_block_none_forever() {
    // Nine pages of four; each needs up to seven: (10 + 18 - 1) tokens.
    let limits = EngineLimits {
        max_unread_events: 4,
        prefill_chunk_tokens: 5,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(36, 9, 4), limits);
    let generations: Vec<_> = (0..6).map(|owner| generation(owner, 10, 18)).collect();
    let mut streams: Vec<_> = generations
        .iter()
        .map(|g| (bench.submit(g), vec![]))
        .collect();
    for _ in 0..200 {
        assert!(bench.settle().is_pending());
        for (events, found) in &mut streams {
            found.extend(read(events, 1));
        }
    }
    for ((_, found), generation) in streams.iter().zip(&generations) {
        assert_eq!(found, &expected_events(generation, 36));
    }
    assert_eq!(owners(&bench), [0, 1, 2, 3, 4, 5]);
    // They overlapped: some owner returned after another.
    let mut turns: Vec<Vec<u32>> = bench.calls().into_iter().map(|call| call.owners).collect();
    turns.dedup();
    assert!(turns.len() > 6);
    assert!(bench.all_memory_is_free());
}

#[test]
fn readers_and_engine_wake_each_other() {
    for (max_unread_events, suspensions) in [(2, 0), (3, 2), (256, 1)] {
        let limits = EngineLimits {
            max_unread_events,
            ..EngineLimits::default()
        };
        let bench = Bench::new(FakeModel::new(64, 32, 4), limits);
        bench.controls.suspensions.set(suspensions);
        let found = Rc::new(RefCell::new(Vec::<(u32, Vec<Event>)>::new()));
        // Each task is polled only when it is woken.
        let tasks = FuturesUnordered::<Pin<Box<dyn Future<Output = ()>>>>::new();
        for owner in 0..8 {
            let events = bench.submit(&generation(owner, 6, 20));
            let found = found.clone();
            tasks.push(Box::pin(async move {
                let events = events.collect().await;
                found.borrow_mut().push((owner, events));
            }));
        }
        let Bench { run, handle, .. } = bench;
        tasks.push(Box::pin(async move { run.unwrap().await.unwrap() }));
        tasks.push(Box::pin(async move { drop(handle) }));
        let mut all = std::pin::pin!(tasks.collect::<()>());
        assert!(
            run_until_stalled(all.as_mut()).is_ready(),
            "a task was not woken"
        );
        assert_eq!(found.borrow().len(), 8);
        for (owner, events) in &*found.borrow() {
            assert_eq!(events, &expected_events(&generation(*owner, 6, 20), 64));
        }
    }
}

#[test]
fn the_engine_ends_with_its_last_handle_and_its_last_choice() {
    let bench = Bench::new(FakeModel::new(512, 128, 4), EngineLimits::default());
    let second = bench.handle.clone();
    let mut events = bench.submit(&generation(1, 6, 400));
    let Bench { run, handle, .. } = bench;
    let mut run = run.unwrap();
    drop(handle);
    assert!(run_until_stalled(run.as_mut()).is_pending());
    drop(second);
    assert!(
        run_until_stalled(run.as_mut()).is_pending(),
        "a paused choice is still to be read"
    );
    let mut found = read_all(&mut events);
    loop {
        match run_until_stalled(run.as_mut()) {
            Poll::Pending => found.extend(read_all(&mut events)),
            Poll::Ready(ended) => break assert_eq!(ended, Ok(())),
        }
        assert!(found.len() < 401, "read to the end, and still not ended");
    }
    found.extend(read_all(&mut events));
    assert_eq!(found, expected_events(&generation(1, 6, 400), 512));
}

#[test]
fn a_request_takes_one_place_in_the_queue() {
    let limits = EngineLimits {
        max_queue: 1,
        ..EngineLimits::default()
    };
    let bench = Bench::new(FakeModel::new(64, 64, 4), limits);
    let requests = [0, 10].map(|first| {
        let prompts = (first..first + 5).map(|owner| Generation {
            candidates: 3,
            ..generation(owner, 6, 20)
        });
        prompts.collect::<Vec<_>>()
    });
    let kept = requests.each_ref().map(|request| bench.submit_all(request));
    assert_eq!(bench.handle.active_generations(), 30);
    assert_eq!(
        bench.handle.submit(vec![generation(9, 6, 20)]).map(drop),
        Err(Error::QueueFull { max_queue: 1 })
    );
    drop(kept);
    assert_eq!(bench.handle.active_generations(), 0);
}

#[test]
fn a_lagging_reader_pauses_its_candidate_alone() {
    let limits = EngineLimits {
        max_unread_events: 6,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 64, 4), limits);
    let request = Generation {
        candidates: 3,
        sampling: sampled(2),
        ..generation(1, 6, 20)
    };
    let mut events = bench.submit_all(std::slice::from_ref(&request)).remove(0);
    let mut lagging = vec![events.remove(1)];
    let found = bench.read_to_end(&mut [events]).remove(0);
    let expected = expected_all(std::slice::from_ref(&request), 64).remove(0);
    assert_eq!(found, [expected[0].clone(), expected[2].clone()]);
    assert_eq!(bench.handle.active_generations(), 1);
    let waiting = read(&mut lagging[0], 5);
    assert_eq!(waiting, expected[1][..5]);
    let rest = bench.read_to_end(&mut [lagging]).remove(0).remove(0);
    assert_eq!(rest, expected[1][5..]);
    assert!(bench.all_memory_is_free());
}

#[test]
fn a_batch_takes_those_that_waited_longest() {
    let limits = EngineLimits {
        max_unread_events: 5,
        ..EngineLimits::default()
    };
    let mut model = FakeModel::new(64, 96, 4);
    model.max_batch = 2;
    let mut bench = Bench::new(model, limits);
    let requests = (1..7).map(|owner| generation(owner, 6, 40));
    let mut events: Vec<Events> = requests.map(|request| bench.submit(&request)).collect();
    assert!(bench.settle().is_pending());
    // All are paused; reading wakes all of them.
    for events in &mut events {
        assert_eq!(read_all(events).len(), 4);
    }
    for _ in 0..6 {
        assert!(bench.step().is_pending());
    }
    for events in &mut events {
        assert_eq!(read_all(events).len(), 2);
    }
}
