//! The pure crates need nothing of their host: linked for wasm32, their import section is empty.
//!
//! A module links in what is reachable from its exports, and pure crates export nothing, so an ordinary link would
//! prove little. Here code is generated for everything that is not generic, used or not, the whole of every archive is
//! linked, and nothing is removed as unreachable.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{ensure, Result};

use super::{module, PURE};
use crate::setup::Setup;
use crate::workspace::Workspace;
use crate::{artifact, process, stamp};

/// Builds the pure crates that exist, links them and all that they depend on, and reads the imports.
pub fn run(workspace: &Workspace, setup: &Setup) -> Result<()> {
    let pure: Vec<_> = PURE.iter().filter(|name| workspace.package(name).is_some()).collect();
    let toolchain = setup.wasm_toolchain()?;
    let mut cargo = toolchain.cargo(workspace, "build");
    cargo.arg("--lib");
    pure.iter().for_each(|name| {
        cargo.args(["-p", name]);
    });
    // What no pure crate switches on for another is pure as well.
    cargo.args(["--features", "remuda-watchtower/recovery"]);
    // Optimising all of a curve, used or not, takes minutes, and changes no import.
    cargo.args(["--config", "profile.dev.package.k256.opt-level=0"]);
    // With flags of its own, and therefore a folder of its own.
    let dir = toolchain.target_dir(workspace).join("purity");
    cargo.env("CARGO_TARGET_DIR", &dir);
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-C link-dead-code");
    let built = artifact::build(&mut cargo)?;
    // What is built for this machine (build scripts, macros) is in other folders.
    let for_wasm = dir.join("wasm32-unknown-unknown");
    let archives: Vec<_> =
        built.iter().filter_map(|artifact| artifact.file("rlib")).filter(|file| file.starts_with(&for_wasm)).collect();
    ensure!(archives.len() >= pure.len(), "cargo built {} archives for {} pure crates", archives.len(), pure.len());

    let source = dir.join("empty.rs");
    let wasm = dir.join("empty.wasm");
    stamp::write(&source, "")?;
    let mut rustc = toolchain.rustc();
    rustc.args(["--crate-type", "cdylib", "-o"]).arg(&wasm).arg(&source);
    let whole = [Path::new("--no-gc-sections"), Path::new("--whole-archive")];
    for argument in whole.into_iter().chain(archives.iter().map(|file| file.as_path())) {
        let mut option = OsString::from("link-arg=");
        option.push(argument);
        rustc.arg("-C").arg(option);
    }
    process::run(&mut rustc)?;
    let imports = module::imports(&stamp::read(&wasm)?)?;
    ensure!(imports.is_empty(), "pure crates need of their host: {}", imports.join(", "));
    println!("{} pure crates in {} archives, no import", pure.len(), archives.len());
    Ok(())
}
