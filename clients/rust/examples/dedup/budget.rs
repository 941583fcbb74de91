//! Which sentences a budget of tokens is spent on.

use std::collections::{HashMap, HashSet};

use super::sentences::{tokens, words};

/// Returns the places to keep, in order, whose sentences fit into `budget` tokens.
///
/// Sentences that hold rare words of the question come first, the others in
/// the order of the text; so without a question this cuts off the end.
pub fn fill(sentences: &[&str], places: &[usize], question: &str, budget: usize) -> Vec<usize> {
    let asked: HashSet<String> = words(question).collect();
    let bags: Vec<HashSet<String>> = sentences.iter().map(|text| words(text).collect()).collect();
    let mut frequency: HashMap<&str, usize> = HashMap::new();
    for word in places.iter().flat_map(|&place| &bags[place]) {
        *frequency.entry(word).or_default() += 1;
    }
    let rarity = |word: &String| {
        frequency.get(word.as_str()).map_or(0.0, |&count| (places.len() as f64 / count as f64).ln())
    };
    // Summed in the order of the alphabet: equal sentences are to weigh the same, always.
    let weight = |place: usize| {
        let mut shared: Vec<&String> = bags[place].intersection(&asked).collect();
        shared.sort_unstable();
        shared.into_iter().map(rarity).sum::<f64>()
    };
    let mut ranked: Vec<(f64, usize)> =
        places.iter().map(|&place| (weight(place), place)).collect();
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    let (mut kept, mut spent) = (Vec::new(), 0);
    for (weight, place) in ranked {
        let cost = tokens(sentences[place]);
        if spent + cost <= budget {
            kept.push(place);
            spent += cost;
        } else if weight == 0.0 {
            // Without a question the text is cut off at the end, not picked by length.
            break;
        }
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: [&str; 4] = ["Anna sings. ", "Boris cooks well. ", "Clara reads. ", "Dora naps. "];

    #[test]
    fn without_a_question_the_end_is_cut_off() {
        assert_eq!(fill(&TEXT, &[0, 1, 2, 3], "", 7), [0, 1]);
    }

    #[test]
    fn what_was_asked_for_comes_first_and_stays_in_order() {
        assert_eq!(fill(&TEXT, &[0, 1, 2, 3], "Does Dora nap, or Anna?", 6), [0, 3]);
    }

    #[test]
    fn a_budget_of_nothing_keeps_nothing() {
        assert_eq!(fill(&TEXT, &[0, 1, 2, 3], "Anna", 0), [0; 0]);
    }
}
