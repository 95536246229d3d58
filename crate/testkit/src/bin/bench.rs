//! `bench`: measures natively, printing lines `bench: NAME = VALUE UNIT`.

use std::time::Instant;

use remuda_testkit::bench::{run, Host};

struct Native(Instant);

impl Host for Native {
    fn now_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1_000.0
    }

    /// Linux says it; elsewhere it is not known.
    fn peak_bytes(&self) -> f64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak.and_then(|kib| kib.trim().parse::<f64>().ok()).map_or(f64::NAN, |kib| kib * 1_024.0)
    }

    fn line(&self, line: &str) {
        println!("{line}");
    }
}

fn main() {
    run(&Native(Instant::now()));
}
