//! `Routed` is made by a session that found the frame legal.

use remuda_session::Routed;

fn main() {
    let _ = Routed::new(());
}
