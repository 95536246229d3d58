//! The report as JSON (`RESOLUTIONS.md` §8). Every text in it is ours, so nothing needs escaping but quotes.

use alloc::string::String;

use remuda_wire::Bytes32;

use super::report::{mode_name, AuditReport};

/// A JSON text under construction.
struct Json(String);

impl Json {
    #[inline(never)]
    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn digit(&mut self, digit: u8, radix: u32) {
        self.0.push(char::from_digit(u32::from(digit), radix).unwrap_or('0'));
    }

    fn number(&mut self, number: usize) {
        if let Some(tens) = (number / 10 > 0).then_some(number / 10) {
            self.number(tens);
        }
        let [digit, ..] = (number % 10).to_le_bytes();
        self.digit(digit, 10);
    }

    fn hexadecimal(&mut self, bytes: &Bytes32) {
        self.raw("\"");
        for byte in bytes.0 {
            self.digit(byte >> 4, 16);
            self.digit(byte & 0xf, 16);
        }
        self.raw("\"");
    }

    fn text(&mut self, text: &str) {
        self.raw("\"");
        for character in text.chars() {
            match character {
                '"' | '\\' => self.0.extend(['\\', character]),
                control if control.is_control() => self.raw(" "),
                other => self.0.push(other),
            }
        }
        self.raw("\"");
    }

    /// A field after another: its name, which the caller's value follows.
    fn next(&mut self, name: &str) {
        self.raw(",\"");
        self.raw(name);
        self.raw("\":");
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
            json.next(name);
            json.number(number);
        }
        json.next("findings");
        json.list(&self.findings, |json, finding| {
            json.raw("{\"item\":");
            match finding.item {
                Some(item) => json.number(item),
                None => json.raw("null"),
            }
            json.next("code");
            json.text(finding.refusal.code());
            json.next("rule");
            json.raw("\"CIP-39 §");
            json.raw(finding.refusal.section());
            json.raw("\"");
            json.next("detail");
            json.text(finding.refusal.meaning());
            json.raw("}");
        });
        json.next("evidence");
        json.list(&self.evidence, |json, evidence| {
            json.raw("{\"code\":");
            json.text(evidence.code.code());
            json.next("items");
            json.list(&evidence.items, |json, item| json.number(*item));
            json.raw("}");
        });
        json.next("assurance");
        json.list(&self.assurance, |json, assurance| {
            json.raw("{\"subscription\":");
            json.hexadecimal(&assurance.subscription);
            json.next("mode");
            json.text(mode_name(assurance.mode));
            json.next("verified");
            json.number(assurance.verified);
            json.next("unverified");
            json.number(assurance.unverified);
            json.raw("}");
        });
        json.next("not_checked");
        json.list(&self.not_checked, |json, text| json.text(text));
        json.raw("}");
        json.0
    }
}
