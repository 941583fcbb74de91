//! Sentences that were said before, found by MinHash and checked by their shingles.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::sentences::words;

const SHINGLE_WORDS: usize = 2;
/// Signatures agree in a band with a good chance from about half the shingles on.
const BANDS: u64 = 16;
const ROWS: u64 = 3;

/// Returns the places of sentences that do not repeat an earlier one.
///
/// Two sentences say the same if the Jaccard similarity of their shingles
/// reaches `similarity` and they hold the same numbers: `gate 4` is not `gate 5`.
pub fn without(sentences: &[&str], similarity: f64) -> Vec<usize> {
    let mut buckets: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    let mut kept: Vec<(usize, Fingerprint)> = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        let print = Fingerprint::of(sentence);
        let bands = print.bands();
        let mut rivals = bands.iter().filter_map(|band| buckets.get(band)).flatten();
        if rivals.any(|&rival| print.repeats(&kept[rival].1, similarity)) {
            continue;
        }
        for band in bands {
            buckets.entry(band).or_default().push(kept.len());
        }
        kept.push((place, print));
    }
    kept.into_iter().map(|(place, _)| place).collect()
}

struct Fingerprint {
    shingles: HashSet<u64>,
    numbers: Vec<String>,
}

impl Fingerprint {
    fn of(sentence: &str) -> Self {
        let words: Vec<String> = words(sentence).collect();
        let size = SHINGLE_WORDS.min(words.len()).max(1);
        let shingles = words.windows(size).map(|shingle| hash(&shingle)).collect();
        let is_number = |word: &&String| word.contains(|letter: char| letter.is_numeric());
        let mut numbers: Vec<String> = words.iter().filter(is_number).cloned().collect();
        numbers.sort_unstable();
        Self { shingles, numbers }
    }

    /// The buckets in which similar sentences meet: the least hashes, band by band.
    fn bands(&self) -> Vec<(u64, u64)> {
        let least = |seed: u64| self.shingles.iter().map(|shingle| mixed(shingle ^ seed)).min();
        let band = |number: u64| {
            let seed = |row: u64| mixed(number * ROWS + row);
            let rows: Vec<Option<u64>> = (0..ROWS).map(|row| least(seed(row))).collect();
            (number, hash(&rows))
        };
        if self.shingles.is_empty() { Vec::new() } else { (0..BANDS).map(band).collect() }
    }

    fn repeats(&self, earlier: &Self, similarity: f64) -> bool {
        let shared = self.shingles.intersection(&earlier.shingles).count();
        let all = self.shingles.len() + earlier.shingles.len() - shared;
        self.numbers == earlier.numbers && shared as f64 >= similarity * all as f64
    }
}

fn hash(value: &impl Hash) -> u64 {
    // The same in every process, unlike the hashers of maps.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Scatters a number (the finaliser of SplitMix64), where a whole hasher is too slow.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "the quick brown fox jumps over the lazy dog near the old river bank today";

    #[test]
    fn repeats_go_whatever_their_case_and_punctuation() {
        assert_eq!(without(&["It rains.", "Go home.", "it RAINS!"], 0.7), [0, 1]);
    }

    #[test]
    fn near_repeats_go_and_others_stay() {
        let near = LONG.replace("today", "again");
        let other = "a slow green turtle crawls under the bridge at noon with great care";
        assert_eq!(without(&[LONG, &near, other], 0.7), [0, 2]);
        assert_eq!(without(&[LONG, &near, other], 1.0), [0, 1, 2]);
    }

    #[test]
    fn sentences_that_differ_in_a_number_are_different() {
        let (one, two) = (format!("{LONG} 4"), format!("{LONG} 5"));
        assert_eq!(without(&[&one, &two, &one], 0.7), [0, 1]);
    }

    #[test]
    fn sentences_without_words_repeat_nothing() {
        assert_eq!(without(&["--- ", "*** "], 0.7), [0, 1]);
    }
}
