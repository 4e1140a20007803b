//! Trailers of a commit message, read strictly: the last paragraph, every line `Token: value`, no folding,
//! and no regard for git's own trailer settings.

/// The trailers of a message: the last paragraph if every line of it reads `Token: value`, else nothing.
///
/// A message of one paragraph has no trailers: its first line is the subject.
pub fn trailers(message: &str) -> Vec<(&str, &str)> {
    let body = message.trim_end_matches('\n');
    let Some(start) = body.rfind("\n\n").map(|at| at + 2) else { return Vec::new() };
    body[start..].lines().map(parse).collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn parse(line: &str) -> Option<(&str, &str)> {
    let (token, value) = line.split_once(": ")?;
    let sound = !token.is_empty() && token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (sound && !value.is_empty() && value.trim() == value).then_some((token, value))
}

/// The lines of a message that begin with `prefix`, whatever paragraph they stand in, 1-based.
pub fn lines_with_prefix<'a>(message: &'a str, prefix: &str) -> Vec<(usize, &'a str)> {
    message
        .lines()
        .enumerate()
        .filter(|(_, line)| line.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix)))
        .map(|(index, line)| (index + 1, line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_last_paragraph_of_trailers_counts() {
        assert_eq!(trailers("Subject\n\nA: 1\nB-C: two words\n"), [("A", "1"), ("B-C", "two words")]);
        assert_eq!(trailers("A: 1\n"), []);
        assert_eq!(trailers("Subject\n\nA: 1\n\nnot one\n"), []);
        assert_eq!(trailers("Subject\n\nA: 1\n folded\n"), []);
        assert_eq!(trailers("Subject\n\nA: 1\nA:2\n"), []);
        assert_eq!(trailers("Subject\n\nA:  1\n"), [], "one blank, as it was signed");
    }

    #[test]
    fn a_prefix_is_found_anywhere_and_in_any_case() {
        let message = "Subject\nbronzeward-plan: x\n\ntext Bronzeward-Plan: y\n";
        assert_eq!(lines_with_prefix(message, "Bronzeward-"), [(2, "bronzeward-plan: x")]);
    }
}
