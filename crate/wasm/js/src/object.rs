//! Plain JavaScript objects, member by member. Every `u64` is a `bigint`.

use js_sys::{BigInt, Object, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

/// A value that has one JavaScript form.
pub trait ToJs {
    /// Converts.
    fn to_js(&self) -> JsValue;
}

impl ToJs for JsValue {
    fn to_js(&self) -> JsValue {
        self.clone()
    }
}

impl ToJs for str {
    fn to_js(&self) -> JsValue {
        JsValue::from_str(self)
    }
}

impl ToJs for &str {
    fn to_js(&self) -> JsValue {
        JsValue::from_str(self)
    }
}

impl ToJs for String {
    fn to_js(&self) -> JsValue {
        JsValue::from_str(self)
    }
}

impl ToJs for bool {
    fn to_js(&self) -> JsValue {
        JsValue::from_bool(*self)
    }
}

impl ToJs for u64 {
    fn to_js(&self) -> JsValue {
        BigInt::from(*self).into()
    }
}

impl ToJs for [u8] {
    fn to_js(&self) -> JsValue {
        Uint8Array::from(self).into()
    }
}

impl ToJs for remuda_wire::Bytes32 {
    fn to_js(&self) -> JsValue {
        JsValue::from_str(&self.to_string())
    }
}

impl ToJs for remuda_wire::Address {
    fn to_js(&self) -> JsValue {
        JsValue::from_str(&self.to_string())
    }
}

impl<T: ToJs> ToJs for Option<T> {
    fn to_js(&self) -> JsValue {
        self.as_ref().map_or(JsValue::NULL, ToJs::to_js)
    }
}

/// A count or a time in milliseconds as a JavaScript number: both stay far below 2^53.
pub fn number(value: impl TryInto<u32>) -> JsValue {
    value.try_into().map_or(JsValue::NULL, |value: u32| JsValue::from_f64(f64::from(value)))
}

/// A time in milliseconds since the epoch as a JavaScript number.
pub fn time_ms(ms: u64) -> JsValue {
    // `bigint` to number is exact below 2^53, which is the year 287396.
    js_sys::Number::from(JsValue::from_f64(ms.to_string().parse().unwrap_or(f64::MAX))).into()
}

/// An object in the making.
#[derive(Default)]
pub struct Builder(Object);

impl Builder {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member.
    pub fn with(self, name: &str, value: &(impl ToJs + ?Sized)) -> Self {
        self.with_value(name, &value.to_js())
    }

    /// Adds a member that is a JavaScript value already.
    pub fn with_value(self, name: &str, value: &JsValue) -> Self {
        // Setting a member of a plain object of our own cannot fail.
        drop(Reflect::set(&self.0, &JsValue::from_str(name), value));
        self
    }

    /// The object.
    pub fn build(self) -> JsValue {
        self.0.unchecked_into()
    }
}
