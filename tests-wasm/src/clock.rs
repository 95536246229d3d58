//! Clock, timers and randomness.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use js_sys::Array;
use remuda_web::clock;

use crate::harness::{in_time, Spy};

/// A sleep ends at its time and never before it; one in the past ends at once.
pub async fn sleeping_ends_at_its_time() {
    clock::sleep_until(0).await;
    for _ in 0..10 {
        let until = clock::now_ms() + 15;
        in_time(clock::sleep_until(until)).await.expect("it ends");
        assert!(clock::now_ms() >= until);
    }
}

/// A delay longer than a browser keeps does not fire at once, and dropping it clears the timer.
pub async fn a_dropped_sleep_clears_its_timer() {
    let cleared = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&cleared);
    let spy = Spy::on(js_sys::global().into(), "clearTimeout", move |original, this, arguments: &Array| {
        count.set(count.get() + 1);
        original.apply(this, arguments)
    });
    {
        let mut long = pin!(clock::sleep_until(u64::MAX));
        let mut context = Context::from_waker(Waker::noop());
        assert!(long.as_mut().poll(&mut context).is_pending());
        clock::sleep_until(clock::now_ms() + 30).await;
        assert!(long.as_mut().poll(&mut context).is_pending(), "a long delay is kept");
    }
    assert!(cleared.get() >= 2, "both timers were cleared");
    drop(spy);
}

/// Random bytes come, and differ.
pub async fn random_bytes_differ() {
    let (a, b) = (clock::random_bytes::<32>(), clock::random_bytes::<32>());
    assert!(a.is_ok() && a != b);
    assert!(clock::random_bytes::<0>().is_ok());
}

/// The cases, as tests of the file that calls it: the mode is per file.
#[macro_export]
macro_rules! clock_cases {
    () => {
        $crate::cases!(clock: sleeping_ends_at_its_time, a_dropped_sleep_clears_its_timer, random_bytes_differ);
    };
}
