//! Benchmarks: the same measurements natively, in WebAssembly under Node.js and in a page of Chromium, side by side.
//!
//! All sides print lines `bench: NAME = VALUE UNIT`; those on @noble libraries run beside the wasm.

use std::process::Command;

use anyhow::{ensure, Result};

use crate::glue::{Build, Glue, Host};
use crate::process;
use crate::setup::Setup;
use crate::workspace::Workspace;

/// The crate whose program `bench` measures natively.
const NATIVE: &str = "remuda-testkit";
/// The crate that measures in wasm.
const WASM: &str = "remuda-tests-wasm-bench";

/// One line of a measuring program.
#[derive(Debug, PartialEq)]
struct Measured {
    name: String,
    value: f64,
    unit: String,
}

/// Measures natively, under Node.js and in headless Chromium, and prints the three side by side.
pub fn run(workspace: &Workspace, setup: &Setup) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["run", "--release", "-p", NATIVE, "--bin", "bench"]);
    let native = measure("native", &mut cargo)?;
    let node = measure("wasm under Node.js", &mut wasm(workspace, setup, Host::Node, "run.mjs")?)?;
    let mut page = wasm(workspace, setup, Host::Web, "page.mjs")?;
    let chromium = measure("wasm in Chromium", page.env("CHROMIUM", setup.browser()?.chromium))?;
    print_table(&[native, node, chromium]);
    Ok(())
}

/// The program that measures in wasm on one host.
fn wasm(workspace: &Workspace, setup: &Setup, host: Host, script: &str) -> Result<Command> {
    let folder = match host {
        Host::Node => "glue/bench",
        Host::Web => "glue/bench-page",
    };
    let out = setup.wasm_toolchain()?.target_dir(workspace).join(folder);
    let glue = Glue { package: WASM, name: "bench", build: Build::Release, host, out }.make(workspace, setup)?;
    let mut node = Command::new("node");
    node.current_dir(&workspace.root).arg(format!("tests-wasm/bench/{script}")).arg(glue);
    Ok(node)
}

/// A line for each measurement, by its name, in the order in which they first come.
fn print_table(sides: &[Vec<Measured>; 3]) {
    println!(
        "\n{:<56} {:>14} {:>14} {:>14} {:>12}  unit",
        "measurement", "native", "Node.js", "Chromium", "page/native"
    );
    let mut printed: Vec<&str> = Vec::new();
    for Measured { name, unit, .. } in sides.iter().flatten() {
        if printed.contains(&name.as_str()) {
            continue;
        }
        printed.push(name);
        let values = sides.each_ref().map(|side| side.iter().find(|it| it.name == *name).map(|it| it.value));
        let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let [native, node, page] = values;
        let ratio = native.zip(page).map(|(native, page)| page / native);
        println!("{name:<56} {:>14} {:>14} {:>14} {:>12}  {unit}", cell(native), cell(node), cell(page), cell(ratio));
    }
}

fn measure(side: &str, command: &mut Command) -> Result<Vec<Measured>> {
    println!("{side}:");
    let mut measured = Vec::new();
    process::run_watched(command, |line| measured.extend(parse(line)))?;
    ensure!(!measured.is_empty(), "{side} printed no line `bench: NAME = VALUE UNIT`");
    Ok(measured)
}

fn parse(line: &str) -> Option<Measured> {
    let (name, rest) = line.strip_prefix("bench: ")?.split_once(" = ")?;
    let (value, unit) = rest.split_once(' ')?;
    Some(Measured { name: name.to_owned(), value: value.parse().ok()?, unit: unit.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{parse, Measured};

    #[test]
    fn a_measurement_is_read() {
        let expected = Measured { name: "verified records".into(), value: 1234.5, unit: "records/s".into() };
        assert_eq!(parse("bench: verified records = 1234.5 records/s"), Some(expected));
        assert_eq!(parse("warming up"), None);
    }
}
