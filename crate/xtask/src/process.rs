//! Running other programs: every failure says which command it was, and a child's exit code can be passed on.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{anyhow, Context, Result};

/// A program that ran and did not succeed.
#[derive(Debug)]
pub struct ChildFailed {
    command: String,
    status: ExitStatus,
}

impl ChildFailed {
    /// The exit code to pass on: the child's own, or 1 when a signal ended it.
    pub fn exit_code(&self) -> u8 {
        self.status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1)
    }
}

impl fmt::Display for ChildFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed ({})", self.command, self.status)
    }
}

impl std::error::Error for ChildFailed {}

/// Runs to the end; its output goes where ours goes.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| not_started(command, error))?;
    succeeded(command, status)
}

/// Runs to the end and returns what it printed on standard output; standard error goes where ours goes.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started(command, error))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed text that is not UTF-8", shown(command)))
}

/// Runs to the end, printing each line of its standard output as it comes and showing it to `watch`.
pub fn run_watched(command: &mut Command, mut watch: impl FnMut(&str)) -> Result<()> {
    run_lines(command, |line| {
        watch(line);
        writeln!(io::stdout(), "{line}")
    })
}

/// Runs to the end, giving each line of its standard output to `take`, which alone decides what is shown.
pub fn run_lines(
    command: &mut Command,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(command, error))?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            take(&String::from_utf8_lossy(&line?)).context("standard output was closed")?;
        }
    }
    let status = child.wait()?;
    succeeded(command, status)
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(ChildFailed {
        command: shown(command),
        status,
    }
    .into())
}

fn not_started(command: &Command, error: io::Error) -> anyhow::Error {
    let program = command.get_program().to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound => anyhow!("`{program}` is not installed, or not on PATH"),
        _ => anyhow!("`{program}` could not be started: {error}"),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
