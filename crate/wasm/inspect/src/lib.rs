//! The exports of `remuda/inspect`: what an audit file (`RESOLUTIONS.md` §8) holds, as JSON for people to look at.
//!
//! Nothing here judges: the verifier does, and a page shows both. What is computed beside decoding are digests, the folding
//! of lane proofs, and the two signed objects of an evidence, by the same functions that the verifier uses.

mod cut;
mod describe;
mod json;
mod objects;
mod outline;
mod page;
mod path;
mod portable;

use outline::Outline;
use page::Page;
use wasm_bindgen::prelude::wasm_bindgen;

/// An outline in the making.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct FileOutline(Outline);

#[wasm_bindgen]
impl FileOutline {
    /// Before the first byte.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the file, however they are cut.
    pub fn push(&mut self, chunk: &[u8]) {
        self.0.push(chunk);
    }

    /// Items seen so far.
    pub fn items(&self) -> u32 {
        self.0.items()
    }

    /// The end of the file: the outline as JSON.
    pub fn finish(self) -> String {
        self.0.finish()
    }
}

/// Some items of a file, read from the place of an earlier one.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ItemPage(Page);

#[wasm_bindgen]
impl ItemPage {
    /// The bytes that follow begin with item `at`; `count` items are wanted from `first` on.
    #[wasm_bindgen(constructor)]
    pub fn new(at: u32, first: u32, count: u32) -> Self {
        Self(Page::new(at, first, count))
    }

    /// Takes the next bytes. Answers whether all that is wanted is there.
    pub fn push(&mut self, chunk: &[u8]) -> bool {
        self.0.push(chunk)
    }

    /// The end: the items as JSON, those that came.
    pub fn finish(self) -> String {
        self.0.finish()
    }
}

/// One item in full, as JSON, from its bytes; `undefined` where they are no item.
#[wasm_bindgen(js_name = describeItem)]
pub fn describe_item(item: &[u8]) -> Option<String> {
    describe::describe(item).map(|described| described.to_string())
}

/// A file that holds the head of another, and the two signed objects of two of its items that contradict each other;
/// `undefined` where no two do.
#[wasm_bindgen(js_name = portableEvidence)]
pub fn portable_evidence(head: &[u8], a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
    portable::portable_evidence(head, a, b)
}
