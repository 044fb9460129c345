//! The nearest name that exists.

/// The nearest of these names, unless all are far from `wanted`.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = (wanted.chars().count() / 3).max(2);
    let named = names.filter(|name| *name != wanted).map(|name| (distance(wanted, name), name));
    named.min().filter(|(distance, _)| *distance <= far).map(|(_, name)| name)
}

/// Number of characters to insert, remove or replace.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 1..row.len() {
            let replaced = diagonal + usize::from(letter != other[column - 1]);
            diagonal = row[column];
            row[column] = replaced.min(row[column] + 1).min(row[column - 1] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_near_and_another_word_is_not() {
        let near = |wanted, names: &[&'static str]| nearest(wanted, names.iter().copied());
        assert_eq!(near("web", &["api", "wbe", "web-1"]), Some("wbe"));
        assert_eq!(near("web", &["web", "database"]), None, "it is none that is near to itself");
        assert_eq!(near("checkout", &["chekcout-v2", "checkuot"]), Some("checkuot"));
        assert_eq!(near("web", &[]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
