//! The web side: the npm package and the pages over the generated wasm, the demo that serves them, the tests that drive them.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::glue::{Build, Glue, Host};
use crate::setup::{NodeTools, Setup};
use crate::tally::{Runner, Tally};
use crate::workspace::Workspace;
use crate::{artefacts, artifact, process, vectors};

/// The server of the demo and of the end-to-end tests.
pub const PROVIDER: &str = "remuda-dev-provider";
/// The npm workspace of the end-to-end tests.
pub const E2E: &str = "tests-wasm/e2e";
/// The npm workspaces with unit tests.
pub const UNIT_TESTED: [&str; 2] = ["pkg", "www"];

/// Where Vite puts the pages.
const PAGES: &str = "www/dist";
/// Where the demo's provider keeps its data.
const DATA: &str = ".cache/demo";
/// What the demo's writer appends, unless `--writer` says otherwise.
const RECORDS_PER_SECOND: &str = "20";
/// What the demo's feed publishes, unless `--feed-rate` says otherwise.
const FEED_MESSAGES_PER_SECOND: &str = "1";

/// Builds the wasm and the npm package over it.
pub fn build_package(workspace: &Workspace, setup: &Setup) -> Result<NodeTools> {
    let node = setup.node()?;
    artefacts::build(workspace, setup)?;
    process::run(node.npm().args(["run", "build", "-w", "pkg", "--if-present"]))?;
    Ok(node)
}

/// Serves the pages with a provider of their own, whose writer fills the lanes, until interrupted. The provider takes
/// this process's place, so that whatever ends this ends it.
pub fn demo(workspace: &Workspace, setup: &Setup, arguments: &[String]) -> Result<()> {
    let (_, provider) = build_all(workspace, setup)?;
    let mut command = Command::new(provider);
    command.current_dir(&workspace.root).args(["serve", "--pages", PAGES, "--data", DATA]);
    if !arguments.iter().any(|argument| argument.starts_with("--writer")) {
        command.args(["--writer", RECORDS_PER_SECOND]);
    }
    if !arguments.iter().any(|argument| argument.starts_with("--feed-rate")) {
        command.args(["--feed-rate", FEED_MESSAGES_PER_SECOND]);
    }
    eprintln!("\n[demo] open one of the addresses below in a browser; Ctrl-C stops it\n");
    Err(anyhow::Error::new(command.args(arguments).exec()).context("the dev provider could not be started"))
}

/// Drives the pages in headless Chromium against the real provider.
pub fn e2e(workspace: &Workspace, setup: &Setup, arguments: &[String], tally: &mut Tally) -> Result<()> {
    let browser = setup.browser()?;
    let (node, provider) = build_all(workspace, setup)?;
    let out = setup.wasm_toolchain()?.target_dir(workspace).join("glue/vectors-page");
    let glue = Glue { package: vectors::WASM, name: "vectors", build: Build::Dev, host: Host::Web, out };
    let mut command = quiet(node.npm());
    command.env("REMUDA_VECTORS_GLUE", glue.make(workspace, setup)?);
    command.args(["test", "-w", E2E, "--"]).args(arguments);
    command
        .env("CHROMIUM", browser.chromium)
        .env("REMUDA_DEV_PROVIDER", provider)
        .env("REMUDA_PAGES", workspace.root.join(PAGES));
    process::run_watched(&mut command, |line| tally.read(Runner::Playwright, line))
}

/// Runs the unit tests of the npm workspaces that have any.
pub fn unit_tests(workspace: &Workspace, setup: &Setup, tally: &mut Tally) -> Result<()> {
    let node = build_package(workspace, setup)?;
    for folder in UNIT_TESTED {
        if node.has_script(folder, "test") {
            process::run_watched(quiet(node.npm()).args(["test", "-w", folder]), |line| {
                tally.read(Runner::Vitest, line)
            })?;
        }
    }
    Ok(())
}

/// Builds the pages and the provider, and returns the provider's path.
fn build_all(workspace: &Workspace, setup: &Setup) -> Result<(NodeTools, PathBuf)> {
    let node = build_package(workspace, setup)?;
    process::run(node.npm().args(["run", "build", "-w", "www"]))?;
    let provider = artifact::build_program(&workspace.root, PROVIDER, &["--bin", PROVIDER])?;
    Ok((node, provider))
}

/// Without colours: its lines are read.
fn quiet(mut command: Command) -> Command {
    command.env("NO_COLOR", "1").env_remove("FORCE_COLOR");
    command
}
