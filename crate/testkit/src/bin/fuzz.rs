//! `fuzz --seconds N --vectors DIR --fixtures DIR [TARGET…]`: runs fuzz targets without libFuzzer: first what once crashed,
//! then the vectors, then the vectors bent, the same way in every run. What crashes is written into the fixtures.

use std::alloc::System;
use std::io::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use remuda_testkit::fuzz::{find, mutate, seeds, Choices, Target, TARGETS};
use serde_json::Value;
use stats_alloc::{StatsAlloc, INSTRUMENTED_SYSTEM};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a run is asked to do.
struct Request {
    seconds: u64,
    vectors: PathBuf,
    fixtures: PathBuf,
    targets: Vec<&'static Target>,
}

fn main() -> ExitCode {
    let request = match parse(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(reason) => {
            eprintln!("{reason}\nusage: fuzz --seconds N --vectors DIR --fixtures DIR [TARGET…]");
            return ExitCode::from(2);
        }
    };
    match run(&request) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request =
        Request { seconds: 20, vectors: "vectors".into(), fixtures: "fuzz/fixtures".into(), targets: Vec::new() };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--seconds" => request.seconds = value()?.parse().map_err(|_| "--seconds needs a number")?,
            "--vectors" => request.vectors = value()?.into(),
            "--fixtures" => request.fixtures = value()?.into(),
            name => request.targets.push(find(name).ok_or(format!("no target {name}"))?),
        }
    }
    if request.targets.is_empty() {
        request.targets = TARGETS.iter().collect();
    }
    Ok(request)
}

/// Every target for its share of the time; answers how many failed.
fn run(request: &Request) -> Result<usize, String> {
    let seeds = seeds(&vector_files(&request.vectors)?);
    let share = Duration::from_secs(request.seconds) / u32::try_from(request.targets.len()).unwrap_or(u32::MAX);
    let (mut passed, mut failed, mut total) = (0, 0, 0u64);
    for target in &request.targets {
        let folder = request.fixtures.join(target.name);
        let corpus: Vec<_> =
            seeds.iter().filter(|(of, _)| of.name == target.name).map(|(_, bytes)| bytes.as_slice()).collect();
        let (runs, crash) = run_target(target, &files(&folder)?, &corpus, share);
        total += runs;
        match crash {
            None => {
                println!("{}: {runs} inputs from {} seeds", target.name, corpus.len());
                passed += 1;
            }
            Some(input) => {
                println!("{}: FAILED after {runs} inputs: {}", target.name, keep(&folder, &input)?);
                failed += 1;
            }
        }
    }
    println!("fuzz: {passed} passed, {failed} failed ({total} inputs)");
    Ok(failed)
}

fn run_target(target: &Target, fixtures: &[Vec<u8>], corpus: &[&[u8]], share: Duration) -> (u64, Option<Vec<u8>>) {
    let started = Instant::now();
    let mut runs = 0;
    let known = fixtures.iter().map(Vec::as_slice).chain(corpus.iter().copied());
    for input in known {
        runs += 1;
        if !holds(target, input) {
            return (runs, Some(input.to_vec()));
        }
    }
    let mut choices = Choices::new(0x9e37_79b9_7f4a_7c15);
    while started.elapsed() < share {
        let mut input = corpus.get(choices.below(corpus.len())).map_or_else(Vec::new, |seed| seed.to_vec());
        let other = corpus.get(choices.below(corpus.len())).copied().unwrap_or_default();
        mutate(&mut input, other, &mut choices);
        runs += 1;
        if !holds(target, &input) {
            return (runs, Some(input));
        }
    }
    (runs, None)
}

/// Whether the promise holds; a panic is printed by the hook.
fn holds(target: &Target, input: &[u8]) -> bool {
    catch_unwind(|| target.check(input, || HEAP.stats().bytes_allocated)).is_ok()
}

/// Writes an input that crashed, so that every later run begins with it.
fn keep(folder: &Path, input: &[u8]) -> Result<String, String> {
    let name = remuda_wire::preimage::keccak256(input).to_string();
    let path = folder.join(&name[..16]);
    let write = || {
        std::fs::create_dir_all(folder)?;
        std::fs::File::create(&path)?.write_all(input)
    };
    write().map_err(|error| error.to_string())?;
    Ok(path.display().to_string())
}

fn files(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))).collect()
}

fn vector_files(folder: &Path) -> Result<Vec<Value>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    };
    paths.iter().map(read).collect()
}
