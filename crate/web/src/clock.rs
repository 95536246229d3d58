//! Time, timers and randomness of the browser: inputs to crates that have none of their own.

use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};

use crate::event::Slot;
use crate::script::global_function;

/// The longest delay that a browser keeps: beyond it a timer fires at once.
const MAX_DELAY_MS: u64 = 0x7fff_ffff;

/// Milliseconds since 1970 by the device's clock, which may jump, also backwards.
pub fn now_ms() -> u64 {
    milliseconds(js_sys::Date::now())
}

/// A date before 1970 or none at all counts as 1970.
fn milliseconds(date: f64) -> u64 {
    // An integer for every date that a browser can give: dates end at 8.64e15.
    let date = date.clamp(0.0, 8.64e15);
    #[expect(clippy::as_conversions, reason = "the only way from a float, exact in this range")]
    if date.is_nan() {
        0
    } else {
        date as u64
    }
}

/// Ends when the device's clock has reached `ms`, never before; at once when it has already. Dropping it clears the timer.
/// A page in the background is woken late.
pub async fn sleep_until(ms: u64) {
    // Browsers round delays down: a timer can fire just before its time.
    while let Some(left) = ms.checked_sub(now_ms()).filter(|left| *left > 0) {
        let fired = Slot::new();
        let fire = fired.clone();
        let _timer = Timer::after(left, move || {
            let _ = fire.fill(());
        });
        fired.await;
    }
}

/// A call in the future. Dropping it before that takes it back.
pub(crate) struct Timer {
    handle: JsValue,
    _closure: Closure<dyn FnMut()>,
}

impl Timer {
    /// Calls `fire` after `ms`, or after the longest delay that a browser keeps. Never, where there are no timers.
    pub fn after(ms: u64, fire: impl FnOnce() + 'static) -> Self {
        let closure = Closure::once(fire);
        let delay = u32::try_from(ms.min(MAX_DELAY_MS)).unwrap_or(u32::MAX >> 1);
        let handle = global_function("setTimeout")
            .and_then(|set| set.call2(&js_sys::global(), closure.as_ref().unchecked_ref(), &JsValue::from(delay)).ok());
        Self { handle: handle.unwrap_or(JsValue::UNDEFINED), _closure: closure }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(clear) = global_function("clearTimeout") {
            let _ = clear.call1(&js_sys::global(), &self.handle);
        }
    }
}

/// The browser gave no random bytes: no key, nonce or challenge may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

impl std::fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the browser gave no random bytes")
    }
}

impl std::error::Error for NoRandomness {}

/// Bytes from `crypto.getRandomValues`.
///
/// # Errors
/// [`NoRandomness`].
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn dates_become_whole_milliseconds() {
        assert_eq!(milliseconds(1_796_000_000_123.9), 1_796_000_000_123);
        assert_eq!([-1.0, f64::NAN, f64::NEG_INFINITY].map(milliseconds), [0; 3]);
        assert_eq!(milliseconds(f64::INFINITY), 8_640_000_000_000_000);
    }
}
