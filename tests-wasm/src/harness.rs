//! What the suites share: methods of the browser replaced for a while, and futures that must not hang.

use std::cell::Cell;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{spawn_local, JsFuture};

/// A method that is replaced until this is dropped. The replacement sees `this` and the arguments.
pub struct Spy {
    target: JsValue,
    method: &'static str,
    original: Function,
    _replacement: Closure<dyn FnMut(JsValue, Array) -> Result<JsValue, JsValue>>,
}

impl Spy {
    /// Replaces a method of every object of a class.
    pub fn on_class(
        class: &str,
        method: &'static str,
        replacement: impl FnMut(&Function, &JsValue, &Array) -> Result<JsValue, JsValue> + 'static,
    ) -> Self {
        let class = Reflect::get(&js_sys::global(), &class.into()).expect("the class is there");
        Self::on(Reflect::get(&class, &"prototype".into()).expect("a class has a prototype"), method, replacement)
    }

    /// Replaces a method of one object.
    pub fn on(
        target: JsValue,
        method: &'static str,
        mut replacement: impl FnMut(&Function, &JsValue, &Array) -> Result<JsValue, JsValue> + 'static,
    ) -> Self {
        let original: Function =
            Reflect::get(&target, &method.into()).expect("the method is there").dyn_into().expect("a function");
        let inner = original.clone();
        let replacement: Closure<dyn FnMut(JsValue, Array) -> Result<JsValue, JsValue>> =
            Closure::new(move |this: JsValue, arguments: Array| replacement(&inner, &this, &arguments));
        // An arrow function would not see `this`.
        let wrapper =
            Function::new_with_args("replacement", "return function (...all) { return replacement(this, all) }");
        let wrapped = wrapper.call1(&JsValue::UNDEFINED, replacement.as_ref()).expect("a function is made");
        Reflect::set(&target, &method.into(), &wrapped).expect("a method can be replaced");
        Self { target, method, original, _replacement: replacement }
    }
}

impl Drop for Spy {
    fn drop(&mut self) {
        let _ = Reflect::set(&self.target, &self.method.into(), &self.original);
    }
}

/// A `DOMException` of that name.
pub fn dom_exception(name: &str) -> JsValue {
    let class = Reflect::get(&js_sys::global(), &"DOMException".into()).expect("the class is there");
    Reflect::construct(class.unchecked_ref::<Function>(), &Array::of2(&"provoked".into(), &name.into()))
        .expect("an exception is made")
}

/// Ends after `ms`.
pub async fn sleep(ms: i32) {
    let promise = Promise::new(&mut |resolve, _| {
        let set: Function = Reflect::get(&js_sys::global(), &"setTimeout".into())
            .expect("timers exist")
            .dyn_into()
            .expect("a function");
        set.call2(&JsValue::UNDEFINED, &resolve, &ms.into()).expect("a timer is set");
    });
    JsFuture::from(promise).await.expect("a timer fires");
}

/// A future that runs by itself.
pub struct Started<T>(Rc<Cell<Option<T>>>);

impl<T: 'static> Started<T> {
    /// Starts it.
    pub fn new(future: impl Future<Output = T> + 'static) -> Self {
        let result = Rc::new(Cell::new(None));
        let inside = Rc::clone(&result);
        spawn_local(async move { inside.set(Some(future.await)) });
        Self(result)
    }

    /// Its value within five seconds; `None`: it hangs.
    pub async fn end(self) -> Option<T> {
        for _ in 0..500 {
            if let Some(value) = self.0.take() {
                return Some(value);
            }
            sleep(10).await;
        }
        None
    }
}

/// The future's value within five seconds; `None`: it hangs.
pub async fn in_time<T: 'static>(future: impl Future<Output = T> + 'static) -> Option<T> {
    Started::new(future).end().await
}

/// Polls two futures side by side to their ends.
pub async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none() {
            if let Poll::Ready(value) = a.as_mut().poll(context) {
                first = Some(value);
            }
        }
        if second.is_none() {
            if let Poll::Ready(value) = b.as_mut().poll(context) {
                second = Some(value);
            }
        }
        match (first.take(), second.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (first, second) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}
