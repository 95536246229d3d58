//! Counting tests by the closing lines of the programs that run them.

/// How many tests passed, failed, and were not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ran and did as expected.
    pub passed: u64,
    /// Ran and did not.
    pub failed: u64,
    /// Did not run: ignored, skipped, or of an operation that is not known yet.
    pub skipped: u64,
}

/// Whose closing lines are read.
#[derive(Clone, Copy)]
pub enum Runner {
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, of cargo and of wasm-bindgen.
    Cargo,
    /// `vectors: 3 passed, 0 failed, 1 not run (…)`.
    Vectors,
    /// `fuzz: 3 passed, 0 failed (800000 inputs)`.
    Fuzz,
    /// `Tests  1 failed | 3 passed | 1 skipped (5)`.
    Vitest,
    /// `3 passed (2.1s)`, `1 failed`, `1 flaky`, each on a line of its own.
    Playwright,
}

impl Tally {
    /// Adds what a line of output says, if it is a closing line.
    pub fn read(&mut self, runner: Runner, line: &str) {
        let line = line.trim();
        match runner {
            Runner::Cargo => {
                let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
                else {
                    return;
                };
                counts.split(';').for_each(|count| self.count(count));
            }
            Runner::Vectors | Runner::Fuzz => {
                let prefix = if let Runner::Fuzz = runner { "fuzz: " } else { "vectors: " };
                let Some(counts) = line.strip_prefix(prefix) else {
                    return;
                };
                let counts = counts.split(" (").next().unwrap_or_default();
                counts.split(',').for_each(|count| self.count(count));
            }
            Runner::Vitest => {
                let Some(counts) = line.strip_prefix("Tests ") else {
                    return;
                };
                let counts = counts.split('(').next().unwrap_or_default();
                counts.split('|').for_each(|count| self.count(count));
            }
            Runner::Playwright => self.count(line.split(" (").next().unwrap_or_default()),
        }
    }

    /// Adds another tally to this one.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Adds `3 passed` and its like; other text counts nothing.
    fn count(&mut self, text: &str) {
        let Some((number, what)) = text.trim().split_once(' ') else {
            return;
        };
        let Ok(number) = number.parse::<u64>() else {
            return;
        };
        match what {
            // A test that passed only when tried again has passed.
            "passed" | "flaky" => self.passed += number,
            "failed" | "interrupted" => self.failed += number,
            "ignored" | "skipped" | "todo" | "not run" | "did not run" => self.skipped += number,
            _ => {}
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Runner, Tally};

    fn read(runner: Runner, text: &str) -> (u64, u64, u64) {
        let mut tally = Tally::default();
        text.lines().for_each(|line| tally.read(runner, line));
        (tally.passed, tally.failed, tally.skipped)
    }

    #[test]
    fn cargo_and_wasm_bindgen() {
        let text = "running 3 tests\ntest a ... ok\ntest result: FAILED. 2 passed; 1 failed; 4 ignored; 0 measured; 9 filtered out; finished in 0.1s\n\
                    test result: ok. 5 passed; 0 failed; 0 ignored; 0 filtered out; finished in 2s\n";
        assert_eq!(read(Runner::Cargo, text), (7, 1, 4));
    }

    #[test]
    fn vectors() {
        assert_eq!(
            read(
                Runner::Vectors,
                "x: differs\nvectors: 10 passed, 2 failed, 3 not run (unknown operations: audit 3, soc 9)\n"
            ),
            (10, 2, 3)
        );
    }

    #[test]
    fn fuzz() {
        assert_eq!(read(Runner::Fuzz, "grant: 90 inputs\nfuzz: 7 passed, 1 failed (123 inputs)\n"), (7, 1, 0));
    }

    #[test]
    fn vitest() {
        let text = " Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 8 passed | 2 skipped (11)\n   Duration  300ms\n";
        assert_eq!(read(Runner::Vitest, text), (8, 1, 2));
    }

    #[test]
    fn playwright() {
        let text = "  ✓  1 a.spec.ts:3:1 › adds (12ms)\n  1 failed\n    a.spec.ts:9:1 › loses\n  1 flaky\n  2 skipped\n  3 did not run\n  7 passed (4.2s)\n";
        assert_eq!(read(Runner::Playwright, text), (8, 1, 5));
    }

    #[test]
    fn the_closing_line() {
        assert_eq!(Tally { passed: 3, failed: 0, skipped: 0 }.to_string(), "3 passed, 0 failed");
        assert_eq!(Tally { passed: 3, failed: 1, skipped: 2 }.to_string(), "3 passed, 1 failed, 2 skipped");
    }
}
