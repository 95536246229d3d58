//! The measurements in wasm, and the scene of one of them for whoever measures something else beside.
#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;

use js_sys::{Array, Date, Function, Reflect, Uint8Array};
use remuda_testkit::bench::{self, Scene};
use remuda_verify::authentic::OneKey;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

const PAGE_BYTES: u32 = 65_536;

struct Host<'a> {
    performance: JsValue,
    now: Function,
    on_line: &'a Function,
    thrown: RefCell<Option<JsValue>>,
}

impl bench::Host for Host<'_> {
    fn now_ms(&self) -> f64 {
        self.now.call0(&self.performance).ok().and_then(|now| now.as_f64()).unwrap_or_else(Date::now)
    }

    /// A memory never shrinks.
    fn peak_bytes(&self) -> f64 {
        u32::try_from(core::arch::wasm32::memory_size::<0>()).map_or(f64::NAN, f64::from) * f64::from(PAGE_BYTES)
    }

    fn line(&self, line: &str) {
        if let Err(thrown) = self.on_line.call1(&JsValue::UNDEFINED, &line.into()) {
            self.thrown.replace(Some(thrown));
        }
    }
}

/// Measures, calling `on_line` with each line to print.
///
/// # Errors
/// What `on_line` throws.
#[wasm_bindgen]
pub fn run(on_line: &Function) -> Result<(), JsValue> {
    let performance = Reflect::get(&js_sys::global(), &"performance".into())?;
    let now = Reflect::get(&performance, &"now".into())?.dyn_into()?;
    let host = Host { performance, now, on_line, thrown: RefCell::new(None) };
    bench::run(&host);
    host.thrown.into_inner().map_or(Ok(()), Err)
}

thread_local! {
    static SCENE: (Scene, OneKey) = {
        let scene = Scene::new();
        let keys = scene.keys();
        (scene, keys)
    };
}

/// The batch that is measured: the frames, and the 32 bytes of the key that signed its checkpoint.
#[wasm_bindgen]
pub fn scene() -> Array {
    SCENE.with(|(scene, _)| {
        let frames: Array = scene.frames.iter().map(|frame| Uint8Array::from(frame.as_slice())).collect();
        let key = Uint8Array::from(scene.provider.public_key().0 .0.as_slice());
        Array::of2(&frames, &key)
    })
}

/// Verifies it once, from the bytes of its frames.
#[wasm_bindgen(js_name = verifyScene)]
pub fn verify_scene() {
    SCENE.with(|(scene, keys)| scene.verify(keys));
}
