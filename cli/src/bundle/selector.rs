//! Label selectors, as an API server reads them.

use kube::core::{Expression, Selector};

/// The selector that a text says; none if it cannot be read.
pub(super) fn parse(text: &str) -> Option<Selector> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = term_end(rest);
        all.push(expression(rest[..end].trim())?);
        rest = rest[end..].trim_start_matches(',').trim_start();
    }
    Some(all.into_iter().collect())
}

/// Where the first term ends: commas in brackets belong to it.
fn term_end(text: &str) -> usize {
    let mut depth = 0;
    let is_end = |char: char| {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        char == ',' && depth == 0
    };
    text.find(is_end).unwrap_or(text.len())
}

fn expression(term: &str) -> Option<Expression> {
    let own = |text: &str| text.trim().to_owned();
    if let Some((head, values)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) {
        let values = values.split(',').map(own).collect();
        let (key, operator) = head.trim().rsplit_once(' ')?;
        return match operator {
            "in" => Some(Expression::In(own(key), values)),
            "notin" => Some(Expression::NotIn(own(key), values)),
            _ => None,
        };
    }
    Some(if let Some((key, value)) = term.split_once("!=") {
        Expression::NotEqual(own(key), own(value))
    } else if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        Expression::Equal(own(key), own(value))
    } else if let Some(key) = term.strip_prefix('!') {
        Expression::DoesNotExist(own(key))
    } else {
        Expression::Exists(own(term))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt;

    use super::*;

    #[test]
    fn labels_are_selected_as_by_an_api_server() {
        let labels: BTreeMap<_, _> =
            [("app", "web"), ("x/tier", "a")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        for (text, selects) in [
            ("", true),
            ("app", true),
            ("app=web,x/tier==a", true),
            ("app=web,x/tier=b", false),
            ("app in (web,db),!gone", true),
            ("x/tier in (b, c)", false),
            ("x/tier notin (b,c),app!=db", true),
            ("gone", false),
            ("!app", false),
        ] {
            assert_eq!(parse(text).unwrap().matches(&labels), selects, "{text:?}");
        }
        assert!(parse("app like (web)").is_none());
    }
}
