//! `vectors [--json] FILE…`: runs conformance vectors natively, prints what differs and a closing count.

use std::process::ExitCode;

use remuda_testkit::vector::{run_file, Counts, Report, Verdict};

fn main() -> ExitCode {
    let (flags, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if flags.iter().any(|flag| flag != "--json") || files.is_empty() {
        eprintln!("usage: vectors [--json] FILE…");
        return ExitCode::from(2);
    }
    let json = !flags.is_empty();
    let mut counts = Counts::default();
    for file in &files {
        let ran = std::fs::read_to_string(file)
            .map_err(|error| error.to_string())
            .and_then(|text| run_file(&text, &mut |report| print_report(report, json, &mut counts)));
        if let Err(reason) = ran {
            eprintln!("{file}: {reason}");
            return ExitCode::from(2);
        }
    }
    if !json {
        println!("{}", counts.summary());
    }
    if counts.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print_report(report: &Report, json: bool, counts: &mut Counts) {
    counts.add(report);
    if json {
        println!("{}", report.json_line());
    } else if report.verdict == Verdict::Fail {
        println!("{}: expected {}, got {}", report.name, report.expected, report.got);
    }
}
