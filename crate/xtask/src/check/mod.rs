//! `cargo xtask check`: what can be judged without running the product.

mod invariants;
pub mod layers;
mod module;
pub mod purity;

use std::process::Command;
use std::time::Instant;

use anyhow::{bail, Result};

use crate::setup::Setup;
use crate::workspace::Workspace;
use crate::{codegen, pages, process, validation};

/// Crates that must run anywhere: no import, no clock, no randomness.
const PURE: [&str; 8] = [
    "remuda-wire",
    "remuda-verify",
    "remuda-position",
    "remuda-session",
    "remuda-client",
    "remuda-streaming",
    "remuda-watchtower",
    "remuda-bps",
];

/// Runs every check, going on after a failure so that one run shows everything.
pub fn run(workspace: &Workspace, setup: &Setup) -> Result<()> {
    type Check = fn(&Workspace, &Setup) -> Result<()>;
    let checks: [(&str, Check); 9] = [
        ("format", |workspace, _| process::run(cargo(workspace).args(["fmt", "--all", "--check"]))),
        ("layers", |workspace, _| layers::run(workspace)),
        ("codegen", |workspace, _| codegen::run(workspace, true)),
        ("validation", |workspace, _| validation::run(workspace, true)),
        ("clippy", |workspace, _| {
            process::run(cargo(workspace).args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
        }),
        ("clippy for wasm32", clippy_for_wasm),
        ("docs", |workspace, _| {
            process::run(cargo(workspace).args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
        }),
        ("purity", purity::run),
        ("types", types),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        let started = Instant::now();
        println!("--- {name}");
        if let Err(error) = check(workspace, setup) {
            println!("error: {error:#}");
            failed.push(name);
        }
        println!("--- {name} ({:.1} s)", started.elapsed().as_secs_f64());
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(&workspace.root);
    command
}

/// What the native clippy does not see: code that is compiled only for wasm32.
fn clippy_for_wasm(workspace: &Workspace, setup: &Setup) -> Result<()> {
    let packages: Vec<_> = workspace.packages.iter().filter(|package| package.is_for_wasm()).collect();
    if packages.is_empty() {
        println!("absent: no crate is for wasm32");
        return Ok(());
    }
    let toolchain = setup.wasm_toolchain()?;
    for package in packages {
        let mut clippy = toolchain.cargo(workspace, "clippy");
        clippy.args(["-p", &package.name]);
        if package.is_wasm_only() {
            clippy.arg("--all-targets");
        }
        // The lints of another compiler than everyone's are advice.
        let warnings = if toolchain.is_active() { "-D" } else { "-W" };
        process::run(clippy.args(["--", warnings, "warnings"]))?;
    }
    Ok(())
}

/// The script `check` of each npm workspace that has one, over the real generated declarations.
fn types(workspace: &Workspace, setup: &Setup) -> Result<()> {
    let node = setup.node()?;
    let folders: Vec<_> =
        ["pkg", "www", pages::E2E].into_iter().filter(|folder| node.has_script(folder, "check")).collect();
    if folders.is_empty() {
        println!("absent: no npm workspace has a script `check`");
        return Ok(());
    }
    pages::build_package(workspace, setup)?;
    for folder in folders {
        process::run(node.npm().args(["run", "check", "-w", folder]))?;
    }
    Ok(())
}
