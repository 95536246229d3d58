//! `Verified` is made by `Authority::authenticate` alone.

use remuda_verify::authentic::Verified;
use remuda_wire::Bytes32;

fn main() {
    let _ = Verified { object: (), digest: Bytes32::ZERO };
}
