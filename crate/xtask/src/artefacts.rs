//! The wasm that ships: glue and `.wasm` of each artefact, in `pkg/generated`, and their sizes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};

use crate::glue::{Build, Glue, Host};
use crate::process;
use crate::setup::Setup;
use crate::workspace::Workspace;

/// The crates that ship as wasm, the folder of each in `pkg/generated`, what its files are called, and how it is compiled.
const SHIPPED: [(&str, &str, &str, Build); 5] = [
    ("remuda-wasm-client", "client", "remuda_client", Build::Release),
    ("remuda-wasm-feeds", "feeds", "remuda_feeds", Build::Release),
    ("remuda-wasm-inspect", "inspect", "remuda_inspect", Build::Release),
    ("remuda-wasm-recovery", "recovery", "remuda_recovery", Build::Release),
    ("remuda-wasm-verifier", "verifier", "remuda_verifier", Build::Small),
];

/// Builds what is out of date.
pub fn build(workspace: &Workspace, setup: &Setup) -> Result<()> {
    for (package, folder, name, build) in SHIPPED {
        if workspace.package(package).is_none() {
            eprintln!("absent: {package}");
            continue;
        }
        let out = generated(workspace).join(folder);
        Glue { package, name, build, host: Host::Web, out }.make(workspace, setup)?;
    }
    Ok(())
}

/// Prints the raw and gzipped sizes of everything generated.
pub fn print_sizes(workspace: &Workspace) -> Result<()> {
    let mut files = Vec::new();
    for (_, folder, _, _) in SHIPPED {
        files.extend(shipped_files(&generated(workspace).join(folder))?);
    }
    ensure!(!files.is_empty(), "nothing is built yet: run `cargo xtask wasm` first");
    println!("{:>12} {:>12}  file", "bytes", "gzipped");
    for file in files {
        let raw = file.metadata().with_context(|| file.display().to_string())?.len();
        let name = file.strip_prefix(&workspace.root).unwrap_or(&file);
        println!("{raw:>12} {:>12}  {}", gzipped(&file)?, name.display());
    }
    Ok(())
}

fn generated(workspace: &Workspace) -> PathBuf {
    workspace.root.join("pkg/generated")
}

/// The files of one folder that a browser downloads.
fn shipped_files(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "wasm" || extension == "js"));
    files.sort();
    Ok(files)
}

fn gzipped(file: &Path) -> Result<u64> {
    let script = "process.stdout.write(String(zlib.gzipSync(fs.readFileSync(process.argv[1]), { level: 9 }).length))";
    let text = process::output(Command::new("node").args(["-e", script]).arg(file))?;
    text.parse().with_context(|| format!("node printed {text:?} for a size"))
}
