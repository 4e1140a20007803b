//! The known word that somebody probably meant.

/// The nearest of the known words: few letters apart for its length, whatever their case.
pub(crate) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    let allowed = match lower.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=11 => 2,
        _ => 3,
    };
    let near = known.map(|k| (distance(&lower, &k.to_lowercase()), k));
    near.filter(|(d, _)| *d <= allowed).min().map(|(_, k)| k)
}

/// Letters to insert, remove, change or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["sysctls", "kubelet", "certSANs", "ca", "extraArgs"];
        let meant = |word: &str| nearest(word, known.into_iter());
        assert_eq!(meant("sysctl"), Some("sysctls"));
        assert_eq!(meant("kubeelt"), Some("kubelet"));
        assert_eq!(meant("certsans"), Some("certSANs"));
        assert_eq!(meant("extra_args"), Some("extraArgs"));
        assert_eq!(meant("CA"), Some("ca"));
        assert_eq!(meant("cb"), None);
        assert_eq!(meant("hostname"), None);
    }
}
