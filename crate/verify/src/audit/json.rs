//! The report as JSON (`RESOLUTIONS.md` §8). Every text in it is ours, so nothing needs escaping but quotes.

use alloc::string::String;
use core::fmt::Write;

use super::report::{mode_name, AuditReport};

/// A JSON text under construction.
struct Json(String);

impl Json {
    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn number(&mut self, number: usize) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{number}");
    }

    fn text(&mut self, text: &str) {
        self.0.push('"');
        for character in text.chars() {
            match character {
                '"' | '\\' => self.0.extend(['\\', character]),
                control if control.is_control() => self.0.push(' '),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
    }

    fn list<T>(&mut self, elements: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.raw("[");
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            each(self, element);
        }
        self.raw("]");
    }
}

impl AuditReport {
    /// One JSON object.
    pub fn to_json(&self) -> String {
        let mut json = Json(String::new());
        json.raw("{\"verdict\":");
        json.text(self.verdict.name());
        for (name, number) in [("items", self.items), ("records", self.records), ("signatures", self.signatures)] {
            json.raw(",");
            json.text(name);
            json.raw(":");
            json.number(number);
        }
        json.raw(",\"findings\":");
        json.list(&self.findings, |json, finding| {
            json.raw("{\"item\":");
            match finding.item {
                Some(item) => json.number(item),
                None => json.raw("null"),
            }
            json.raw(",\"code\":");
            json.text(finding.refusal.code());
            json.raw(",\"rule\":\"CIP-39 §");
            json.raw(finding.refusal.section());
            json.raw("\",\"detail\":");
            json.text(finding.refusal.meaning());
            json.raw("}");
        });
        json.raw(",\"evidence\":");
        json.list(&self.evidence, |json, evidence| {
            json.raw("{\"code\":");
            json.text(evidence.code.code());
            json.raw(",\"items\":");
            json.list(&evidence.items, |json, item| json.number(*item));
            json.raw("}");
        });
        json.raw(",\"assurance\":");
        json.list(&self.assurance, |json, assurance| {
            let _ = write!(json.0, "{{\"subscription\":\"{}\",\"mode\":", assurance.subscription);
            json.text(mode_name(assurance.mode));
            json.raw(",\"verified\":");
            json.number(assurance.verified);
            json.raw(",\"unverified\":");
            json.number(assurance.unverified);
            json.raw("}");
        });
        json.raw(",\"not_checked\":");
        json.list(&self.not_checked, |json, text| json.text(text));
        json.raw("}");
        json.0
    }
}
