//! A little randomness, for pauses and request ids; nothing secret.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

fn bits() -> u64 {
    // Each state is freshly seeded from the system's randomness.
    RandomState::new().hash_one(0)
}

/// Picks a pause between two.
pub(crate) fn pause(least: Duration, most: Duration) -> Duration {
    least + most.saturating_sub(least).mul_f64(bits() as f64 / u64::MAX as f64)
}

/// Makes a random UUID.
pub(crate) fn uuid() -> String {
    let text = format!("{:016x}{:016x}", bits(), bits());
    let variant = ["8", "9", "a", "b"][(bits() % 4) as usize];
    format!(
        "{}-{}-4{}-{variant}{}-{}",
        &text[..8],
        &text[8..12],
        &text[13..16],
        &text[17..20],
        &text[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_the_shape_of_one_and_never_repeats() {
        let (one, other) = (uuid(), uuid());
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_ne!(one, other);
    }

    #[test]
    fn a_pause_stays_within_its_bounds() {
        let (least, most) = (Duration::from_millis(50), Duration::from_millis(100));
        for _ in 0..1_000 {
            assert!((least..=most).contains(&pause(least, most)));
        }
    }
}
