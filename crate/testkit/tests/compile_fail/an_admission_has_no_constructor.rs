//! `Admission` is made by `Boundary::plan` alone.

use remuda_position::{Admission, Boundary, WriteSet};

fn pretend(write: WriteSet, boundary: Boundary) -> Admission {
    Admission { write, boundary }
}

fn main() {}
