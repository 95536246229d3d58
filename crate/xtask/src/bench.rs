//! Benchmarks: the same measurements natively and in WebAssembly under Node.js, side by side.
//!
//! Both sides print lines `bench: NAME = VALUE UNIT`; those on @noble libraries run beside the wasm.

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

/// Measures on both sides and prints their ratio.
pub fn run(workspace: &Workspace, setup: &Setup) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&workspace.root).args(["run", "--release", "-p", NATIVE, "--bin", "bench"]);
    let native = measure("native", &mut cargo)?;

    let out = setup.wasm_toolchain()?.target_dir(workspace).join("glue/bench");
    let glue =
        Glue { package: WASM, name: "bench", build: Build::Release, host: Host::Node, out }.make(workspace, setup)?;
    let mut node = Command::new("node");
    node.current_dir(&workspace.root).arg("tests-wasm/bench/run.mjs").arg(glue);
    let wasm = measure("wasm under Node.js", &mut node)?;

    println!("\n{:<56} {:>14} {:>14} {:>12}  unit", "measurement", "native", "wasm", "wasm/native");
    for Measured { name, value, unit } in &native {
        let Some(other) = wasm.iter().find(|other| other.name == *name) else {
            println!("{name:<56} {value:>14.3} {:>14} {:>12}  {unit}", "-", "-");
            continue;
        };
        println!("{name:<56} {value:>14.3} {:>14.3} {:>12.3}  {unit}", other.value, other.value / value);
    }
    for Measured { name, value, unit } in wasm.iter().filter(|it| native.iter().all(|other| other.name != it.name)) {
        println!("{name:<56} {:>14} {value:>14.3} {:>12}  {unit}", "-", "-");
    }
    Ok(())
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
