//! Text as sentences, words and tokens.

/// Cuts text into sentences; joined, they are the text again.
pub fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let (mut start, mut is_over) = (0, false);
    let mut letters = text.char_indices().peekable();
    while let Some((_, letter)) = letters.next() {
        let next = letters.peek().copied();
        if letter == '\n' || (matches!(letter, '.' | '!' | '?') && is_space(next)) {
            is_over = true;
        }
        // White space belongs to the sentence it follows.
        if let (true, Some((place, following))) = (is_over, next)
            && !following.is_whitespace()
        {
            sentences.push(&text[start..place]);
            (start, is_over) = (place, false);
        }
    }
    if start < text.len() {
        sentences.push(&text[start..]);
    }
    sentences
}

fn is_space(next: Option<(usize, char)>) -> bool {
    next.is_none_or(|(_, letter)| letter.is_whitespace())
}

/// The words of a text, in lower case, without punctuation.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase)
}

/// How many tokens a model sees, roughly: words in pieces of six letters, and each other sign.
pub fn tokens(text: &str) -> usize {
    let (mut count, mut run) = (0, 0);
    for letter in text.chars() {
        run = if letter.is_alphanumeric() { run + 1 } else { 0 };
        let is_sign = run == 0 && !letter.is_whitespace();
        count += usize::from(is_sign || run % 6 == 1);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_join_to_the_text_they_came_from() {
        for text in ["", "One.", "One. Two!  Three?\n\nFour 3.5 five\nSix", " \n A. ü? 日本。 B"]
        {
            assert_eq!(split(text).concat(), text);
        }
        assert_eq!(split("It is 3.5 m. Yes!\n\nNo"), ["It is 3.5 m. ", "Yes!\n\n", "No"]);
    }

    #[test]
    fn tokens_are_words_pieces_of_long_ones_and_signs() {
        assert_eq!(tokens("The depot opens."), 4);
        assert_eq!(tokens("extraordinarily"), 3);
        assert_eq!(tokens(" \n"), 0);
    }
}
