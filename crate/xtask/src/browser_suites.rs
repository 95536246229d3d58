//! The browser suites: each test binary of `remuda-tests-wasm` in headless Chromium, its tests counted.
//!
//! A plain `#[test]` does not run on wasm32 and says so with exit code 0; so a binary that ran no test is a failure.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde_json::{json, Value};

use crate::setup::{Browser, Setup};
use crate::tally::{Runner, Tally};
use crate::workspace::Workspace;
use crate::{artifact, process, stamp};

/// The crate of the suites: one file in its `tests` folder for each mode (page, worker, …).
pub const PACKAGE: &str = "remuda-tests-wasm";

/// Another driver's variable would make the runner choose by an order of its own.
const OTHER_DRIVERS: [&str; 7] = [
    "GECKODRIVER",
    "SAFARIDRIVER",
    "MSEDGEDRIVER",
    "CHROMEDRIVER_REMOTE",
    "GECKODRIVER_REMOTE",
    "SAFARIDRIVER_REMOTE",
    "MSEDGEDRIVER_REMOTE",
];

/// Runs every suite, or of each only the tests whose name contains `filter`.
pub fn run(workspace: &Workspace, setup: &Setup, filter: Option<&str>, tally: &mut Tally) -> Result<()> {
    let toolchain = setup.wasm_toolchain()?;
    let tools = setup.bindgen()?;
    let browser = setup.browser()?;
    let package = workspace.package(PACKAGE).with_context(|| format!("there is no crate {PACKAGE}"))?;
    every_family_is_run(workspace, &package.dir)?;
    let arguments = ["--no-run", "-p", PACKAGE];
    let built = artifact::build(toolchain.cargo(workspace, "test").args(arguments))?;
    let webdriver = webdriver_json(workspace, &browser, &toolchain.target_dir(workspace))?;

    let mut binaries: Vec<_> =
        built.iter().filter_map(|artifact| Some((&artifact.name, artifact.executable.as_ref()?))).collect();
    binaries.sort();
    let mut ran = 0;
    let mut failures = Vec::new();
    for (name, binary) in binaries {
        println!("\n     Running {name} in {}", browser.chromium.display());
        let mut runner = Command::new(&tools.test_runner);
        runner.current_dir(&package.dir).arg(binary).args(filter);
        OTHER_DRIVERS.iter().for_each(|variable| {
            runner.env_remove(variable);
        });
        runner.env("CHROMEDRIVER", &browser.chromedriver);
        runner.env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", &webdriver);
        // For a whole binary, and for the driver's start: a loaded machine is slow, not broken.
        runner.env("WASM_BINDGEN_TEST_TIMEOUT", "300");
        runner.env("WASM_BINDGEN_TEST_DRIVER_TIMEOUT", "60");
        let mut found = Tally::default();
        if let Err(error) = process::run_watched(&mut runner, |line| found.read(Runner::Cargo, line)) {
            failures.push(format!("{name}: {error:#}"));
        } else if found.passed == 0 && filter.is_none() {
            failures.push(format!(
                "{name}: no test ran; mark them #[wasm_bindgen_test], or give the target `test = false`"
            ));
        }
        ran += found.passed + found.failed;
        tally.add(found);
    }
    ensure!(failures.is_empty(), "browser suites failed:\n  {}", failures.join("\n  "));
    ensure!(
        ran > 0,
        "no browser test ran{}",
        filter.map(|text| format!(": none contains {text:?}")).unwrap_or_default()
    );
    Ok(())
}

/// Each vector file is named by a suite.
fn every_family_is_run(workspace: &Workspace, package: &Path) -> Result<()> {
    let mut suites = String::new();
    for file in files(&package.join("tests"))? {
        suites.push_str(&String::from_utf8_lossy(&stamp::read(&file)?));
    }
    let families = files(&workspace.root.join("vectors"))?;
    let names = families.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    let names = names.filter_map(|file| file.file_stem()).map(|name| name.to_string_lossy());
    let absent: Vec<_> = names.filter(|name| !suites.contains(&format!(" = \"{name}\","))).collect();
    ensure!(absent.is_empty(), "no browser suite runs these vectors: {}", absent.join(", "));
    Ok(())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
}

/// A copy of the project's `webdriver.json` that names the browser of this machine.
fn webdriver_json(workspace: &Workspace, browser: &Browser, dir: &Path) -> Result<PathBuf> {
    let project = workspace.root.join("webdriver.json");
    let mut value: Value = serde_json::from_slice(&stamp::read(&project)?)
        .with_context(|| format!("{} is not JSON", project.display()))?;
    value["goog:chromeOptions"]["binary"] =
        json!(browser.chromium.to_str().context("the browser's path is not UTF-8")?);
    let file = dir.join("webdriver.json");
    stamp::write(&file, &value.to_string())?;
    Ok(file)
}
