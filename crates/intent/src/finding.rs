//! Findings: what is wrong with the tree, where, and what to do.

use std::fmt;

use talos_config::Pos;
use talos_config::path::one_line;

/// A stable code of a finding. People filter, documents explain and tests assert on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The codes that are made from the tree alone.
pub mod codes {
    use super::Code;

    /// A file that must be there is missing.
    pub const MISSING_FILE: Code = Code("missing-file");
    /// A file where none is expected.
    pub const UNKNOWN_FILE: Code = Code("unknown-file");
    /// A link, a submodule or another thing that is no regular file.
    pub const NOT_A_FILE: Code = Code("not-a-file");
    /// A file is no YAML that can be read.
    pub const UNREADABLE: Code = Code("unreadable");
    /// A key that the format does not have.
    pub const UNKNOWN_KEY: Code = Code("unknown-key");
    /// A value of the wrong type, or one that the format does not allow.
    pub const WRONG_VALUE: Code = Code("wrong-value");
    /// The name inside a file is not the file's.
    pub const NAME_MISMATCH: Code = Code("name-mismatch");
    /// The same name, or the same identity, twice.
    pub const DUPLICATE: Code = Code("duplicate");
    /// Something is named that does not exist.
    pub const MISSING_REFERENCE: Code = Code("missing-reference");
    /// The repository asks for another version of this tool.
    pub const REQUIRES: Code = Code("requires");
    /// `allowed_signers` cannot be read.
    pub const SIGNERS: Code = Code("allowed-signers");
    /// The policy cannot work as it is written.
    pub const POLICY: Code = Code("policy");
    /// A setting that this version does not honour yet.
    pub const NOT_SUPPORTED: Code = Code("not-supported");
    /// A templated file.
    pub const TEMPLATE: Code = Code("template");
}

/// One thing that is wrong, or that should be known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the repository.
    pub file: String,
    /// Where in the file.
    pub pos: Pos,
    /// The stable code.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
    /// Does it refuse, or only warn?
    pub severity: Severity,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing can be planned over it.
    Error,
    /// To be known; refuses nothing.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Finding {
    /// An error at a place.
    pub fn error(
        file: impl Into<String>,
        pos: Pos,
        code: Code,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Finding {
        Finding {
            file: file.into(),
            pos,
            code,
            message: message.into(),
            help: help.into(),
            severity: Severity::Error,
        }
    }

    /// A warning at a place.
    pub fn warning(
        file: impl Into<String>,
        pos: Pos,
        code: Code,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(file, pos, code, message, help) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = format!("{}:{}: {} [{}]", self.file, self.pos, self.message, self.code);
        if !self.help.is_empty() {
            row.push_str("; ");
            row.push_str(&self.help);
        }
        // keys and names of documents are anybody's
        f.write_str(&one_line(&row))
    }
}

/// The first line of a file, for findings about the file as a whole.
pub const TOP: Pos = Pos { line: 1, column: 1 };

/// A collection of findings, sorted and without repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, others: Findings) {
        self.0.extend(others.0);
    }

    /// Everything found, by file and place.
    pub fn sorted(mut self) -> Vec<Finding> {
        self.0.sort();
        self.0.dedup();
        self.0
    }

    /// Those that refuse.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.severity == Severity::Error)
    }

    /// Every finding, in the order in which it was made.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// Does anything refuse?
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }
}

impl From<Finding> for Findings {
    fn from(finding: Finding) -> Findings {
        Findings(vec![finding])
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.clone().sorted().iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}
