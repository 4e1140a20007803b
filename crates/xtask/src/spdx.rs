//! Licence expressions: whether one of their readings allows only what is allowed.

/// Does an expression (`MIT OR (Apache-2.0 AND ISC)`, or cargo's old `MIT/Apache-2.0`) leave a way that needs only
/// allowed licences? An expression that cannot be read does not.
pub fn allows(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut parser = Parser { tokens: spaced.split_whitespace().collect(), at: 0, allowed };
    let read = parser.either();
    read == Some(true) && parser.at == parser.tokens.len()
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        let hit = self.tokens.get(self.at).is_some_and(|token| *token == word);
        self.at += usize::from(hit);
        hit
    }

    fn either(&mut self) -> Option<bool> {
        let mut fits = self.all()?;
        while self.take("OR") {
            fits |= self.all()?;
        }
        Some(fits)
    }

    fn all(&mut self) -> Option<bool> {
        let mut fits = self.one()?;
        while self.take("AND") {
            fits &= self.one()?;
        }
        Some(fits)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let fits = self.either()?;
            return self.take(")").then_some(fits);
        }
        let id = *self.tokens.get(self.at).filter(|id| !["OR", "AND", "WITH", ")"].contains(id))?;
        self.at += 1;
        // an exception only ever gives more than the licence does
        if self.take("WITH") {
            self.tokens.get(self.at)?;
            self.at += 1;
        }
        Some(self.allowed.contains(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_crates_write() {
        let allowed = ["MIT", "Apache-2.0", "ISC"];
        for fine in [
            "MIT",
            "Apache-2.0 / MIT",
            "Unlicense/MIT",
            "Apache-2.0 OR GPL-2.0-only",
            "(GPL-3.0 OR MIT) AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(allows(fine, &allowed), "{fine}");
        }
        for refused in
            ["GPL-3.0", "MIT AND GPL-3.0", "", "MIT OR", "(MIT", "MIT ISC", "MIT) OR (MIT", "mit", "MIT WITH"]
        {
            assert!(!allows(refused, &allowed), "{refused}");
        }
    }
}
