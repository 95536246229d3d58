//! `Committed` is made by `commit` alone, after the transaction's `complete`.

use remuda_position::{Boundary, Committed};

fn pretend(boundary: Boundary) -> Committed {
    Committed { boundary }
}

fn main() {}
