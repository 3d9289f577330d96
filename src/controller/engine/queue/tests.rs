//! Times at which objects are due, and their rates.

use super::*;

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn queue() -> Queue {
    with_rate(RATE)
}

fn with_rate(rate: Rate) -> Queue {
    Queue::new(Backoff { first: seconds(1), longest: seconds(10) }, rate)
}

fn names(due: &[DueNow]) -> Vec<&str> {
    due.iter().map(|due| due.name.name.as_str()).collect()
}

#[test]
fn an_object_is_due_at_its_time_and_in_flight_once_at_a_time() {
    let (mut queue, start) = (queue(), Instant::now());
    queue.enqueue(&name("a"), start + seconds(1));
    queue.enqueue(&name("a"), start + seconds(5));
    queue.enqueue(&name("b"), start);
    assert_eq!(names(&queue.take_due(start)), ["b"]);
    assert_eq!(queue.next(), Some(start + seconds(1)));
    assert_eq!(names(&queue.take_due(start + seconds(1))), ["a"]);
    // It changes while it is reconciled.
    queue.enqueue(&name("a"), start + seconds(2));
    assert!(queue.take_due(start + seconds(9)).is_empty());
    assert_eq!(queue.next(), None);
    queue.done(&name("a"), Action::RequeueAfter(seconds(60)), start + seconds(9));
    assert_eq!(names(&queue.take_due(start + seconds(9))), ["a"]);
    queue.done(&name("a"), Action::RequeueAfter(seconds(60)), start + seconds(10));
    assert_eq!(queue.next(), Some(start + seconds(70)));
    let due = queue.take_due(start + seconds(70));
    assert_eq!(due, [DueNow { name: name("a"), interval: Some(seconds(60)) }]);
    queue.done(&name("a"), Action::AwaitChange, start + seconds(70));
    assert_eq!(queue.next(), None);
    // A deleted object stays deleted.
    queue.forget(&name("b"));
    queue.done(&name("b"), Action::Retry, start);
    assert_eq!(queue.next(), None);
}

#[test]
fn a_recreated_object_waits_until_the_reconcile_of_the_old_one_has_ended() {
    let (mut queue, start) = (queue(), Instant::now());
    queue.enqueue(&name("a"), start);
    queue.take_due(start);
    queue.forget(&name("a"));
    queue.enqueue(&name("a"), start + seconds(1));
    assert!(queue.take_due(start + seconds(2)).is_empty());
    // The result of the old reconcile does not delay the new object.
    queue.done(&name("a"), Action::Retry, start + seconds(2));
    assert_eq!(names(&queue.take_due(start + seconds(2))), ["a"]);
    queue.done(&name("a"), Action::Retry, start + seconds(2));
    assert_eq!(queue.next(), Some(start + seconds(3)));
}

#[test]
fn no_entry_is_kept_of_deleted_objects_and_of_objects_that_await_a_change() {
    let (mut queue, start) = (queue(), Instant::now());
    for (one, is_deleted) in [("stalled", false), ("deleted", true)] {
        queue.enqueue(&name(one), start);
        queue.take_due(start);
        if is_deleted {
            queue.forget(&name(one));
        }
        queue.done(
            &name(one),
            if is_deleted { Action::RequeueAfter(seconds(60)) } else { Action::AwaitChange },
            start,
        );
    }
    assert!(queue.entries.is_empty() && queue.waiting.is_empty(), "{queue:?}");
}

#[test]
fn backoff_doubles_up_to_the_longest() {
    let (mut queue, start) = (queue(), Instant::now());
    for wait in [1, 2, 4, 8, 10, 10] {
        queue.enqueue(&name("a"), start);
        queue.take_due(start);
        queue.done(&name("a"), Action::Retry, start);
        assert_eq!(queue.next(), Some(start + seconds(wait)));
    }
    queue.take_due(start + seconds(10));
    queue.done(&name("a"), Action::AwaitChange, start + seconds(10));
    let later = start + seconds(60);
    queue.enqueue(&name("a"), later);
    queue.take_due(later);
    queue.done(&name("a"), Action::Retry, later);
    assert_eq!(queue.next(), Some(later + seconds(1)));
}

/// Reconciles an object whenever it is due until `end`.
///
/// Returns the time of each reconcile in milliseconds.
fn reconciled(
    queue: &mut Queue,
    start: Instant,
    end: Instant,
    after: impl Fn(&mut Queue, Instant),
) -> Vec<u128> {
    let mut times = Vec::new();
    while let Some(next) = queue.next().filter(|next| *next <= end) {
        let taken = queue.take_due(next).len() + queue.take_batched(next, None, [name("a")]).len();
        assert_eq!(taken, 1);
        times.push(next.duration_since(start).as_millis());
        after(queue, next);
    }
    times
}

#[test]
fn any_object_is_reconciled_ten_times_in_a_row_and_then_once_a_second() {
    let start = Instant::now() + seconds(1000);
    let end = start + Duration::from_millis(4500);
    let expected = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000, 2000, 3000, 4000];
    let ways: [fn(&mut Queue, Instant); 5] = [
        // Its annotations change while it is reconciled.
        |queue, now| {
            queue.enqueue(&name("a"), now);
            queue.done(&name("a"), Action::AwaitChange, now);
        },
        // Afterwards.
        |queue, now| {
            queue.done(&name("a"), Action::RequeueAfter(seconds(3600)), now);
            queue.enqueue(&name("a"), now);
        },
        // It requeues itself: a short interval, or a reconcile that was cancelled.
        |queue, now| queue.done(&name("a"), Action::RequeueAfter(Duration::ZERO), now),
        // It is deleted and created again.
        |queue, now| {
            queue.done(&name("a"), Action::AwaitChange, now);
            queue.forget(&name("a"));
            queue.enqueue(&name("a"), now);
        },
        |queue, now| {
            queue.forget(&name("a"));
            queue.enqueue(&name("a"), now);
            queue.done(&name("a"), Action::Retry, now);
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let mut queue = queue();
        queue.enqueue(&name("a"), start);
        assert_eq!(reconciled(&mut queue, start, end, way), expected, "way {number}");
        // Another object is not limited by that, and after a pause ten are allowed again.
        queue.enqueue(&name("b"), end);
        assert_eq!(names(&queue.take_due(end)), ["b"]);
    }
}

#[test]
fn a_kind_can_have_another_rate() {
    let start = Instant::now() + seconds(1000);
    let mut queue = with_rate(Rate { burst: 3, refill: Duration::from_millis(100) });
    queue.enqueue(&name("a"), start);
    let times = reconciled(&mut queue, start, start + Duration::from_millis(350), |queue, now| {
        queue.enqueue(&name("a"), now);
        queue.done(&name("a"), Action::AwaitChange, now);
    });
    assert_eq!(times, [0, 0, 0, 100, 200, 300]);
}

#[test]
fn a_bounded_number_of_objects_is_remembered_for_their_rate() {
    let (mut queue, start) = (queue(), Instant::now());
    for number in 0..10_000 {
        let now = start + Duration::from_millis(100 * number);
        queue.enqueue(&name(&number.to_string()), now);
        assert_eq!(queue.take_due(now).len(), 1);
        queue.done(&name(&number.to_string()), Action::AwaitChange, now);
    }
    // Each counts for a second.
    assert!(queue.limits.buckets.len() <= MIN_CLEANUP_AT, "{}", queue.limits.buckets.len());
}

#[test]
fn objects_of_one_repository_converge_to_one_batch() {
    let (mut queue, start) = (queue(), Instant::now());
    // Three created at different times, one with a longer interval, one of another repository, one that failed.
    for (one, offset, interval) in
        [("a", 0, 60), ("b", 20, 60), ("c", 50, 60), ("d", 30, 300), ("x", 10, 60), ("late", 56, 60)]
    {
        queue.enqueue(&name(one), start);
        queue.take_due(start);
        queue.done(&name(one), Action::RequeueAfter(seconds(interval)), start + seconds(offset));
    }
    queue.enqueue(&name("failed"), start);
    queue.take_due(start);
    queue.done(&name("failed"), Action::Retry, start + seconds(60));
    let now = start + seconds(60);
    let due = queue.take_due(now);
    assert_eq!(names(&due), ["a"]);
    let own = || ["a", "b", "c", "changed", "d", "failed", "late", "later"].map(name);
    let batched = queue.take_batched(now, Some(seconds(60)), own());
    // An object that has only just been reconciled is left for the next time.
    assert_eq!(names(&batched), ["b", "c"]);
    // A change within the debounce time is batched, and no object that waits for its interval.
    queue.enqueue(&name("changed"), now + DEBOUNCE / 2);
    queue.enqueue(&name("later"), now + DEBOUNCE * 2);
    assert_eq!(names(&queue.take_batched(now, None, own())), ["changed"]);
}

#[test]
fn each_of_many_objects_is_taken_once_and_in_time() {
    let (mut queue, start) = (queue(), Instant::now());
    let all: Vec<ObjectName> = (0..20_000).map(|number| name(&format!("{number:05}"))).collect();
    for (number, name) in all.iter().enumerate() {
        queue.enqueue(name, start + Duration::from_millis(number as u64));
    }
    let mut taken = Vec::new();
    while let Some(next) = queue.next() {
        let due = queue.take_due(next);
        assert!(!due.is_empty());
        for DueNow { name, .. } in due {
            queue.done(&name, Action::AwaitChange, next);
            taken.push(name);
        }
    }
    assert_eq!(taken, all);
}
