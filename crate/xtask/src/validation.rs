//! `cargo xtask validation`: `crate/VALIDATION.md`, rule by rule: what refuses a violation, which vectors and tests show it.
//!
//! Joined from `spec/conformance-cip39.tsv` (the rules), `spec/VERDICTS.md` (the codes), the sources (which function says a
//! code), `vectors/` (which expectation names it) and `crate/testkit/validation.tsv`, whose lines are
//!
//! ```text
//! rule id <tab> part ; part ; …
//!   plane/code@glob       refused with this code, by vectors of such names: those of this very attack, never all of the code
//!   vector:glob           accepted or derived, by vectors
//!   test:path::function   a test; its file without `crate/` and `.rs`, or of the browser with `.ts` and its title
//!   open: #n why          not yet, and whose work it is
//!   out-of-scope: why     never, or not to be seen by a client, and why
//! ```
//!
//! A rule of class N, "must not accuse", names a vector or a test: what is only refused shows no restraint.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};
use serde_json::Value;

use crate::workspace::{list, Workspace};

const OUTPUT: &str = "crate/VALIDATION.md";
const MAPPING: &str = "crate/testkit/validation.tsv";
const RULES: &str = "spec/conformance-cip39.tsv";
const VERDICTS: &str = "spec/VERDICTS.md";
/// Planes of CIP-39; those of other documents come with their own lists of rules.
const PLANES: [&str; 6] = ["decode", "protocol", "verify", "admission", "endpoint", "evidence"];
/// Where a verdict may be said.
const SOURCES: [&str; 5] = ["wire", "verify", "session", "position", "client"];
/// How many names a cell shows.
const SHOWN: usize = 3;

/// Writes the page, or with `check` says whether it is as it would be written.
pub fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let inputs = Inputs::read(&workspace.root)?;
    let mut faults = Vec::new();
    let page = inputs.page(&workspace.root, &mut faults);
    if !faults.is_empty() {
        bail!("the rules are not all accounted for:\n  {}", faults.join("\n  "));
    }
    let path = workspace.root.join(OUTPUT);
    if check {
        // A checkout may have other line ends than we write.
        let there = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        if there != page {
            bail!("{OUTPUT} is not what `cargo xtask validation` writes: run it");
        }
    } else {
        fs::write(&path, &page).with_context(|| path.display().to_string())?;
    }
    println!("{OUTPUT}: {}", inputs.summary());
    Ok(())
}

struct Rule {
    group: String,
    id: String,
    section: String,
    text: String,
    class: String,
}

/// One part of a mapping.
enum Part {
    Code { code: String, glob: String },
    Vector(String),
    Test { path: String, function: String },
    Open(String),
    OutOfScope(String),
}

struct Inputs {
    rules: Vec<Rule>,
    parts: BTreeMap<String, Vec<Part>>,
    /// Every code of our planes, in the order of the table, with its section.
    codes: Vec<(String, String)>,
    /// By code: where it is said.
    said: BTreeMap<String, BTreeSet<String>>,
    /// By vector: the codes that its expectation names.
    vectors: BTreeMap<String, BTreeSet<String>>,
}

impl Inputs {
    fn read(root: &Path) -> Result<Self> {
        let text = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
        let rules = text(RULES)?.lines().skip(1).map(rule).collect::<Result<_>>()?;
        let mut parts = BTreeMap::new();
        for line in text(MAPPING)?.lines() {
            let (id, mapping) = line.split_once('\t').with_context(|| format!("{MAPPING}: no tab in {line:?}"))?;
            let mapped = mapping.split(" ; ").map(part).collect::<Result<_>>()?;
            if parts.insert(id.to_owned(), mapped).is_some() {
                bail!("{MAPPING}: {id} is there twice");
            }
        }
        let codes = documented(&text(VERDICTS)?);
        let variants = variants(&[text("crate/wire/src/error.rs")?, text("crate/wire/src/verdict.rs")?]);
        let mut said = BTreeMap::new();
        for name in SOURCES {
            scan(&root.join("crate").join(name).join("src"), name, &variants, &mut said)?;
        }
        Ok(Self { rules, parts, codes, said, vectors: vectors(&root.join("vectors"))? })
    }

    fn refused_with<'a>(&'a self, code: &'a str, pattern: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.vectors.iter().filter(move |(name, codes)| codes.contains(code) && matches(pattern, name));
        names.map(|(name, _)| name.as_str())
    }

    /// Whether a part shows something that is not refused: a test, or a vector whose expectation names no code.
    fn shows_acceptance(&self, part: &Part) -> bool {
        match part {
            Part::Test { .. } => true,
            Part::Vector(glob) => self.vectors.iter().any(|(name, codes)| codes.is_empty() && matches(glob, name)),
            Part::Code { .. } | Part::Open(_) | Part::OutOfScope(_) => false,
        }
    }

    fn page(&self, root: &Path, faults: &mut Vec<String>) -> String {
        let mut page = String::from(
            "# Validation: every rule, what refuses its violation, and what shows it\n\n\
             Written by `cargo xtask validation` from `spec/conformance-cip39.tsv`, `spec/VERDICTS.md`, the sources, `vectors/` and\n\
             `crate/testkit/validation.tsv`; `cargo xtask check` fails when it is not up to date, when a rule has no line, a code no\n\
             vector, a mapping no vectors of its very attack, a rule of class N nothing that is accepted, or a test does not exist.\n\
             Vectors run by `cargo xtask vectors`, with `--wasm` in WebAssembly.\n\n",
        );
        let _ = writeln!(page, "{}\n", self.summary());
        page.push_str("Classes: R reject, V violation by a signed object, E evidence pair, S suspicion, C client obligation, N must not accuse, A settled in RESOLUTIONS.md.\n");
        let known: BTreeSet<_> = self.rules.iter().map(|rule| rule.id.as_str()).collect();
        faults.extend(
            self.parts.keys().filter(|id| !known.contains(id.as_str())).map(|id| format!("{id}: no such rule")),
        );
        let mut group = "";
        for rule in &self.rules {
            if rule.group != group {
                group = &rule.group;
                let _ = writeln!(page, "\n## {group}\n\n| rule | § | requirement | class | refused with | vectors | tests | not yet |\n|---|---|---|---|---|---|---|---|");
            }
            let Some(parts) = self.parts.get(&rule.id) else {
                faults.push(format!("{}: no line in {MAPPING}", rule.id));
                continue;
            };
            if rule.class == "N" && !parts.iter().any(|part| self.shows_acceptance(part)) {
                faults.push(format!("{}: names nothing that is accepted", rule.id));
            }
            let row = self.row(root, parts).unwrap_or_else(|fault| {
                faults.push(format!("{}: {fault:#}", rule.id));
                String::new()
            });
            let _ =
                writeln!(page, "| {} | {} | {} | {} | {row} |", rule.id, rule.section, cell(&rule.text), rule.class);
        }
        page.push_str("\n## Codes\n\nWhere each is said, and by how many vectors it is expected.\n\n| code | § | said in | vectors |\n|---|---|---|---|\n");
        for (code, section) in &self.codes {
            let named: Vec<_> = self.refused_with(code, "*").collect();
            if named.is_empty() {
                faults.push(format!("{code}: no vector expects it"));
            }
            let said: Vec<_> = self.said.get(code).into_iter().flatten().map(|place| format!("`{place}`")).collect();
            if said.is_empty() {
                faults.push(format!("{code}: no function says it"));
            }
            let _ = writeln!(page, "| `{code}` | {section} | {} | {} |", said.join(", "), shown(&named));
        }
        page
    }

    fn row(&self, root: &Path, parts: &[Part]) -> Result<String> {
        let (mut codes, mut names, mut tests, mut rest) = (Vec::new(), BTreeSet::new(), Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Code { code, glob } => {
                    if !self.codes.iter().any(|(known, _)| known == code) {
                        bail!("{code} is no code");
                    }
                    let found: Vec<_> = self.refused_with(code, glob).collect();
                    if found.is_empty() {
                        bail!("no vector like {glob} expects {code}");
                    }
                    names.extend(found);
                    codes.push(format!("`{code}`"));
                }
                Part::Vector(glob) => {
                    let found: Vec<_> = self.vectors.keys().filter(|name| matches(glob, name)).collect();
                    if found.is_empty() {
                        bail!("no vector like {glob}");
                    }
                    names.extend(found.into_iter().map(String::as_str));
                }
                Part::Test { path, function } => {
                    let is_script = path.ends_with(".ts");
                    let file = if is_script { path.clone() } else { format!("{path}.rs") };
                    let places = [root.join("crate").join(&file), root.join(&file)];
                    let text = places.iter().find_map(|place| fs::read_to_string(place).ok());
                    let text = text.with_context(|| format!("no file {file}"))?;
                    let named = if is_script { format!("test(\"{function}\"") } else { format!("fn {function}(") };
                    if !text.contains(&named) {
                        bail!("{file} has no {function}");
                    }
                    tests.push(format!("`{path}::{function}`"));
                }
                Part::Open(why) => rest.push(format!("open: {why}")),
                Part::OutOfScope(why) => rest.push(format!("out of scope: {why}")),
            }
        }
        let names: Vec<_> = names.into_iter().collect();
        Ok(format!("{} | {} | {} | {}", codes.join(", "), shown(&names), tests.join(", "), cell(&rest.join("; "))))
    }

    fn summary(&self) -> String {
        let (mut shown, mut partly, mut open, mut out) = (0, 0, 0, 0);
        for parts in self.rules.iter().filter_map(|rule| self.parts.get(&rule.id)) {
            let has = |kind: fn(&Part) -> bool| parts.iter().any(kind);
            let is_shown = has(|part| matches!(part, Part::Code { .. } | Part::Vector(_) | Part::Test { .. }));
            let is_open = has(|part| matches!(part, Part::Open(_)));
            match (is_shown, is_open) {
                (true, false) => shown += 1,
                (true, true) => partly += 1,
                (false, true) => open += 1,
                (false, false) => out += 1,
            }
        }
        format!(
            "{} rules: {shown} shown by vectors or tests, {partly} in part, {open} open, {out} out of scope. {} codes, {} vectors.",
            self.rules.len(),
            self.codes.len(),
            self.vectors.len(),
        )
    }
}

fn rule(line: &str) -> Result<Rule> {
    let mut fields = line.split('\t').map(str::to_owned);
    let mut next = || fields.next().with_context(|| format!("{RULES}: too few fields in {line:?}"));
    let (group, id, section, text) = (next()?, next()?, next()?, next()?);
    let (_attack, _verdict, class) = (next()?, next()?, next()?);
    Ok(Rule { group, id, section, text, class })
}

fn part(text: &str) -> Result<Part> {
    let text = text.trim();
    if let Some(glob) = text.strip_prefix("vector:") {
        return Ok(Part::Vector(glob.to_owned()));
    }
    if let Some(test) = text.strip_prefix("test:") {
        let (path, function) = test.rsplit_once("::").with_context(|| format!("{test:?} names no function"))?;
        return Ok(Part::Test { path: path.to_owned(), function: function.to_owned() });
    }
    if let Some(why) = text.strip_prefix("open:") {
        let why = why.trim();
        if !why.starts_with('#') {
            bail!("{text:?} names no issue");
        }
        return Ok(Part::Open(why.to_owned()));
    }
    if let Some(why) = text.strip_prefix("out-of-scope:") {
        return Ok(Part::OutOfScope(why.trim().to_owned()));
    }
    match text.split_once('@') {
        Some((code, glob)) if glob != "*" => Ok(Part::Code { code: code.to_owned(), glob: glob.to_owned() }),
        _ => bail!("{text:?} names no vectors of this attack: {text}@glob"),
    }
}

/// The codes of our planes, in the order of the table.
fn documented(text: &str) -> Vec<(String, String)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (code, rest) = row.split_once("` | ")?;
        let (plane, _) = code.split_once('/')?;
        let section = rest.split(" | ").next()?;
        PLANES.contains(&plane).then(|| (code.to_owned(), section.to_owned()))
    })
    .collect()
}

/// `Enum::Variant` to code, from the tables in the sources.
fn variants(texts: &[String]) -> BTreeMap<String, String> {
    let mut variants = BTreeMap::new();
    let mut table = None;
    for line in texts.iter().flat_map(|text| text.lines()) {
        let line = line.trim();
        if let Some((name, plane)) = line.strip_prefix("pub enum ").and_then(|rest| rest.split_once(" in \"")) {
            table = plane.split('"').next().map(|plane| (name.to_owned(), plane.to_owned()));
        } else if let (Some((name, plane)), Some((variant, rest))) = (&table, line.split_once(" = \"")) {
            if let Some((reason, _)) = rest.split_once('"') {
                variants.insert(format!("{name}::{variant}"), format!("{plane}/{reason}"));
            }
        }
    }
    variants
}

/// Where each code is said: the function, or the object whose check says it.
fn scan(
    dir: &Path,
    module: &str,
    variants: &BTreeMap<String, String>,
    said: &mut BTreeMap<String, BTreeSet<String>>,
) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let inner =
            if matches!(stem.as_str(), "lib" | "mod") { module.to_owned() } else { format!("{module}::{stem}") };
        if path.is_dir() {
            scan(&path, &inner, variants, said)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            scan_file(&text, &inner, variants, said);
        }
    }
    Ok(())
}

fn scan_file(
    text: &str,
    module: &str,
    variants: &BTreeMap<String, String>,
    said: &mut BTreeMap<String, BTreeSet<String>>,
) {
    let mut item = String::new();
    for line in text.lines().take_while(|line| line.trim() != "#[cfg(test)]") {
        let code = line.split("//").next().unwrap_or_default();
        if let Some(name) = named(code) {
            item = name;
        }
        for word in code.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != ':' && letter != '_') {
            if let Some(code) = variants.get(word) {
                said.entry(code.clone()).or_default().insert(format!("{module}::{item}"));
            }
        }
    }
}

/// The item that a line begins.
fn named(line: &str) -> Option<String> {
    let after = ["fn ", "pub struct ", "pub enum "].iter().find_map(|word| {
        let at = line.find(word)?;
        line[..at].chars().next_back().is_none_or(char::is_whitespace).then(|| &line[at + word.len()..])
    })?;
    let end = after.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(after.len());
    (end > 0).then(|| after[..end].to_owned())
}

/// Every vector of the files in `dir`, with the codes that its expectation names.
fn vectors(dir: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut vectors = BTreeMap::new();
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        for vector in list(&file["vectors"]) {
            let name = vector["name"].as_str().context("a vector without a name")?;
            let mut codes = BTreeSet::new();
            collect_codes(&vector["expect"], &mut codes);
            vectors.insert(name.to_owned(), codes);
        }
    }
    Ok(vectors)
}

fn collect_codes(value: &Value, codes: &mut BTreeSet<String>) {
    match value {
        Value::String(text)
            if PLANES.iter().any(|plane| text.strip_prefix(plane).is_some_and(|rest| rest.starts_with('/'))) =>
        {
            codes.insert(text.clone());
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_codes(element, codes)),
        Value::Object(members) => members.values().for_each(|member| collect_codes(member, codes)),
        _ => {}
    }
}

/// Whether `name` is like `pattern`, in which `*` is any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|after| {
            (0..=after.len()).filter(|at| after.is_char_boundary(*at)).any(|at| matches(rest, &after[at..]))
        }),
    }
}

fn shown(names: &[&str]) -> String {
    let first: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => String::new(),
        count if count <= SHOWN => first.join(", "),
        count => format!("{count}: {}, …", first.join(", ")),
    }
}

/// Text as the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::{matches, named, part, scan_file, variants};
    use std::collections::BTreeMap;

    #[test]
    fn a_star_is_any_text() {
        assert!(matches("grant/*-over-*", "grant/ttl-over-bound"));
        assert!(matches("*", ""));
        assert!(!matches("grant/*", "group/x"));
        assert!(!matches("*-bound", "a-bound-b"));
    }

    #[test]
    fn a_code_alone_is_no_mapping() {
        assert!(part("verify/lane-count").is_err());
        assert!(part("verify/lane-count@*").is_err());
        assert!(part("verify/lane-count@*-withhold-*").is_ok());
        assert!(part("open: somebody").is_err(), "names no issue");
    }

    #[test]
    fn items_are_named() {
        assert_eq!(named("    pub(crate) const fn admit(&self) {").as_deref(), Some("admit"));
        assert_eq!(named("    pub struct LaneProof {").as_deref(), Some("LaneProof"));
        assert_eq!(named("    check |a: &LaneProof| {"), None);
    }

    #[test]
    fn a_code_is_said_by_the_function_around_it() {
        let table = "pub enum VerifyError in \"verify\" {\n LaneCount = \"lane-count\", \"12\", \"x\", Halt;\n}";
        let variants = variants(&[table.to_owned()]);
        let mut said = BTreeMap::new();
        let text = "/// [`VerifyError::LaneCount`]\nfn a() {}\nfn b() { Err(VerifyError::LaneCount) }\n";
        scan_file(text, "verify::batch", &variants, &mut said);
        let places: Vec<_> = said["verify/lane-count"].iter().collect();
        assert_eq!(places, ["verify::batch::b"]);
    }
}
