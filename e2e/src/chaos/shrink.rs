//! Fewer steps that fail in the same way (delta debugging). Pure, but for the runs that it asks for.

/// Finds few of `all` that still fail: without any part of them they do not, as far as `budget` tries could tell. `fails` tries some of them.
pub fn shrink<T: Clone>(all: &[T], budget: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let (mut kept, mut parts, mut tries) = (all.to_vec(), 2, 0);
    while kept.len() > 1 && tries < budget {
        let size = kept.len().div_ceil(parts);
        let without = (0..kept.len()).step_by(size).find_map(|from| {
            let rest = [&kept[..from], kept.get(from + size..).unwrap_or_default()].concat();
            tries += 1;
            (tries <= budget && fails(&rest)).then_some(rest)
        });
        match without {
            Some(rest) => (kept, parts) = (rest, parts.saturating_sub(1).max(2)),
            None if size == 1 => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_goes() {
        let all: Vec<u32> = (0..100).collect();
        let needs = |some: &[u32]| [3, 64, 65].iter().all(|needed| some.contains(needed));
        assert_eq!(shrink(&all, 1000, needs), [3, 64, 65]);
        let few = shrink(&all, 10, needs);
        assert!(few.len() < 100 && needs(&few));
        assert_eq!(shrink(&all, 1000, |_| false), all);
    }
}
