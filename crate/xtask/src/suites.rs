//! `cargo xtask test`: every suite, the cheapest first, each with its duration, and one closing line of counts.

use std::process::Command;
use std::time::Instant;

use anyhow::{bail, Result};

use crate::setup::Setup;
use crate::tally::{Runner, Tally};
use crate::workspace::Workspace;
use crate::{browser_suites, check, fuzz, pages, process, vectors};

/// One suite.
struct Suite {
    name: &'static str,
    /// What it consists of. While one of these is not written yet, the suite is named as absent.
    parts: &'static [Part],
    /// Whether it counts tests; one that does and ran none has failed.
    counted: bool,
    run: fn(&Workspace, &Setup, &mut Tally) -> Result<()>,
}

/// Something that a suite needs to exist.
enum Part {
    Crate(&'static str),
    /// An npm workspace with a script `test`.
    Npm(&'static str),
}

const SUITES: [Suite; 8] = [
    Suite { name: "check", parts: &[], counted: false, run: |workspace, setup, _| check::run(workspace, setup) },
    Suite { name: "rust", parts: &[], counted: true, run: rust_tests },
    Suite {
        name: "vectors",
        parts: &[Part::Crate(vectors::NATIVE)],
        counted: true,
        run: |workspace, setup, tally| vectors::run(workspace, setup, &vectors::Request::default(), tally),
    },
    Suite {
        name: "fuzz --smoke",
        parts: &[Part::Crate(fuzz::PACKAGE)],
        counted: true,
        run: |workspace, _, tally| fuzz::run(workspace, &fuzz::Request { smoke: true, ..Default::default() }, tally),
    },
    Suite {
        name: "vectors --wasm",
        parts: &[Part::Crate(vectors::WASM)],
        counted: true,
        run: |workspace, setup, tally| {
            vectors::run(workspace, setup, &vectors::Request { wasm: true, ..Default::default() }, tally)
        },
    },
    Suite {
        name: "browser",
        parts: &[Part::Crate(browser_suites::PACKAGE)],
        counted: true,
        run: |workspace, setup, tally| browser_suites::run(workspace, setup, None, tally),
    },
    Suite { name: "npm", parts: &[Part::Npm("pkg")], counted: true, run: pages::unit_tests },
    Suite {
        name: "e2e",
        parts: &[Part::Crate(pages::PROVIDER), Part::Npm(pages::E2E)],
        counted: true,
        run: |workspace, setup, tally| pages::e2e(workspace, setup, &[], tally),
    },
];

/// Runs them all, going on after a failure so that one run shows everything.
pub fn run(workspace: &Workspace) -> Result<()> {
    Setup::everything(workspace)?;
    let setup = Setup::new(workspace);
    let mut total = Tally::default();
    let mut report = Vec::new();
    for (index, suite) in SUITES.iter().enumerate() {
        let heading = format!("{}/{} {}", index + 1, SUITES.len(), suite.name);
        if let Some(missing) = suite.parts.iter().find_map(|part| part.missing(workspace, &setup)) {
            println!("\n=== {heading}: absent: {missing}");
            report.push(format!("absent  {} ({missing})", suite.name));
            continue;
        }
        println!("\n=== {heading}");
        let started = Instant::now();
        let mut tally = Tally::default();
        let outcome = (suite.run)(workspace, &setup, &mut tally).and_then(|()| {
            if suite.counted && tally.passed == 0 {
                bail!("no test ran");
            }
            Ok(())
        });
        let verdict = match outcome {
            Ok(()) => "passed",
            Err(error) => {
                println!("error: {error:#}");
                // A suite that fails before or beside its tests has failed all the same.
                tally.failed = tally.failed.max(1);
                "FAILED"
            }
        };
        let counts = if suite.counted || tally.failed > 0 { format!(": {tally}") } else { String::new() };
        let line = format!("{verdict}  {}{counts} ({:.1} s)", suite.name, started.elapsed().as_secs_f64());
        println!("=== {line}");
        report.push(line);
        total.add(tally);
    }
    println!("\n{}\n\n{total}", report.join("\n"));
    if total.failed > 0 {
        bail!("a suite failed");
    }
    Ok(())
}

impl Part {
    fn missing(&self, workspace: &Workspace, setup: &Setup) -> Option<String> {
        match self {
            Self::Crate(name) => workspace.package(name).is_none().then(|| format!("crate {name}")),
            Self::Npm(folder) => {
                let there = setup.node().is_ok_and(|node| node.has_script(folder, "test"));
                (!there).then(|| format!("script `test` of {folder}"))
            }
        }
    }
}

/// All that cargo tests natively, documentation examples included.
fn rust_tests(workspace: &Workspace, _: &Setup, tally: &mut Tally) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["test", "--workspace", "--no-fail-fast"]);
    for package in workspace.packages.iter().filter(|package| package.is_wasm_only()) {
        cargo.args(["--exclude", &package.name]);
    }
    process::run_watched(&mut cargo, |line| tally.read(Runner::Cargo, line))
}
