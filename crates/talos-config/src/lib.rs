//! Talos machine configuration documents: parse, merge, redact, diff, encode. No I/O.
