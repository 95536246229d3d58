//! What running one vector came to, and the sum over many.

use std::collections::BTreeMap;

use serde_json::{json, Value};

/// The outcome of one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Pass,
    /// Anything else.
    Fail,
    /// The runner does not know the operation.
    NotRun,
}

/// One vector, run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The vector's name.
    pub name: String,
    /// Its operation.
    pub op: String,
    /// What the file states.
    pub expected: Value,
    /// What we answered; null when not run.
    pub got: Value,
    /// How they compare.
    pub verdict: Verdict,
}

impl Report {
    /// The machine line: `{"name": …, "got": …}`.
    pub fn json_line(&self) -> String {
        json!({ "name": self.name, "got": self.got }).to_string()
    }
}

/// A running total.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// As expected.
    pub passed: usize,
    /// Not as expected.
    pub failed: usize,
    /// By operation: how many were not run.
    pub not_run: BTreeMap<String, usize>,
}

impl Counts {
    /// Adds one report.
    pub fn add(&mut self, report: &Report) {
        match report.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::NotRun => *self.not_run.entry(report.op.clone()).or_default() += 1,
        }
    }

    /// The closing line.
    pub fn summary(&self) -> String {
        let not_run: usize = self.not_run.values().sum();
        let mut line = format!("vectors: {} passed, {} failed, {not_run} not run", self.passed, self.failed);
        if not_run > 0 {
            let ops: Vec<_> = self.not_run.iter().map(|(op, count)| format!("{op} {count}")).collect();
            line.push_str(&format!(" (unknown operations: {})", ops.join(", ")));
        }
        line
    }
}
