//! `wasm-bindgen-test-runner`: runs a wasm32 test binary in a browser or in Node, as cargo's target runner.

fn main() -> anyhow::Result<()> {
    // `cargo test -q` passes `--quiet` on, which the runner does not know and would refuse.
    let args = std::env::args_os().filter(|arg| arg != "--quiet");
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(args)
}
