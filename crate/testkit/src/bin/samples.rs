//! `samples FOLDER [--check]`: writes the samples of the auditor's page, or only says whether they are up to date.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use remuda_testkit::samples::{index, samples};

fn main() -> ExitCode {
    let (flags, folders): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let ([folder], true) = (folders.as_slice(), flags.iter().all(|flag| flag == "--check")) else {
        eprintln!("usage: samples FOLDER [--check]");
        return ExitCode::FAILURE;
    };
    match run(Path::new(folder), !flags.is_empty()) {
        Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
        Ok(stale) => {
            stale.iter().for_each(|path| eprintln!("{} is not what is generated", path.display()));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes all files; with `is_check` answers those that differ.
fn run(folder: &Path, is_check: bool) -> io::Result<Vec<PathBuf>> {
    let files = samples().into_iter().map(|sample| (format!("{}.audit", sample.name), sample.file));
    let files: Vec<_> = files.chain([("index.json".to_owned(), index().into_bytes())]).collect();
    let mut stale = Vec::new();
    for (name, bytes) in files {
        let path = folder.join(name);
        if !is_check {
            fs::create_dir_all(folder)?;
            fs::write(path, bytes)?;
        } else if fs::read(&path).ok() != Some(bytes) {
            stale.push(path);
        }
    }
    Ok(stale)
}
