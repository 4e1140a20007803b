//! A secret value in memory.

use std::fmt;

use zeroize::Zeroizing;

/// A secret text: wiped on drop, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// Takes a text over.
    pub fn new(text: String) -> SecretValue {
        SecretValue(Zeroizing::new(text))
    }

    /// The text itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}
