//! DOM events as futures: a listener that is removed when it is dropped, and a slot that is filled once.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::closure::Closure;
use wasm_bindgen::JsCast;
use web_sys::{Event, EventTarget};

/// A listener on an event target. Dropping it removes it first, so that no event can reach a closure that is gone.
pub struct Listener {
    target: EventTarget,
    event: &'static str,
    closure: Closure<dyn FnMut(Event)>,
}

impl Listener {
    /// Calls `heard` for every such event until it is dropped.
    pub fn new(target: &EventTarget, event: &'static str, heard: impl FnMut(Event) + 'static) -> Self {
        let closure = Closure::new(heard);
        // Throws only for a signal that has been aborted, and no signal is passed.
        let _ = target.add_event_listener_with_callback(event, closure.as_ref().unchecked_ref());
        Self { target: target.clone(), event, closure }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.target.remove_event_listener_with_callback(self.event, self.closure.as_ref().unchecked_ref());
    }
}

/// A value that arrives once: the first to fill it wins.
pub struct Slot<T>(Rc<RefCell<Inner<T>>>);

struct Inner<T> {
    state: State<T>,
    waker: Option<Waker>,
}

enum State<T> {
    Empty,
    Filled(T),
    /// Its value was taken: whatever comes after is of no use to anyone.
    Taken,
}

impl<T> Slot<T> {
    /// An empty slot.
    pub fn new() -> Self {
        Self(Rc::new(RefCell::new(Inner { state: State::Empty, waker: None })))
    }

    /// Fills it. Gives the value back where it was filled before, or where nobody else holds the slot any more.
    pub fn fill(&self, value: T) -> Result<(), T> {
        let waker = {
            let mut inner = self.0.borrow_mut();
            if !matches!(inner.state, State::Empty) || Rc::strong_count(&self.0) == 1 {
                return Err(value);
            }
            inner.state = State::Filled(value);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Unpin for Slot<T> {}

/// Resolves once. Polled again after that, it never does.
impl<T> Future for Slot<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut inner = self.0.borrow_mut();
        match std::mem::replace(&mut inner.state, State::Taken) {
            State::Filled(value) => Poll::Ready(value),
            State::Taken => Poll::Pending,
            State::Empty => {
                inner.state = State::Empty;
                inner.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
