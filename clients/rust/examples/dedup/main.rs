//! A compressor: drops sentences said before, then keeps within a budget of tokens.
//!
//! Start it with: cargo run --release --example dedup 127.0.0.1:50061
//! Options: `ratio` of the tokens to keep (0.5), or `tokens` to keep, and the
//! `similarity` from which two sentences say the same (0.7).

mod budget;
mod duplicates;
mod sentences;

use cbench_client::{Call, Failure, Info, Server, system};

fn main() -> cbench_client::Result<()> {
    let info = Info::new("rust-dedup")
        .version("1")
        .description("Drops near-duplicate sentences, then keeps within a budget of tokens.");
    let compressor = system(info, |example, call| {
        let settings = Settings::read(call)?;
        let kept = compress(example.context(), example.question(), &settings);
        Ok::<_, Failure>(example.with("context", kept))
    });
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:0".into());
    Server::new(compressor).address(address).serve()
}

/// What a run may set.
struct Settings {
    ratio: f64,
    tokens: Option<f64>,
    similarity: f64,
}

impl Settings {
    fn read(call: &Call) -> Result<Self, Failure> {
        Ok(Self {
            ratio: number(call, "ratio", 1.0)?.unwrap_or(0.5),
            tokens: number(call, "tokens", f64::INFINITY)?,
            similarity: number(call, "similarity", 1.0)?.unwrap_or(0.7),
        })
    }
}

fn number(call: &Call, name: &str, most: f64) -> Result<Option<f64>, Failure> {
    let Some(value) = call.option(name) else { return Ok(None) };
    match value.as_f64() {
        Some(number) if (0.0..=most).contains(&number) => Ok(Some(number)),
        _ => {
            let message =
                format!("option {name} is {value:?}; it must be a number from 0 to {most}");
            Err(Failure::new("INVALID_ARGUMENT", message))
        }
    }
}

fn compress(context: &str, question: &str, settings: &Settings) -> String {
    let sentences = sentences::split(context);
    let total: usize = sentences.iter().map(|sentence| sentences::tokens(sentence)).sum();
    let budget = settings.tokens.unwrap_or(settings.ratio * total as f64) as usize;
    let distinct = duplicates::without(&sentences, settings.similarity);
    let kept = budget::fill(&sentences, &distinct, question, budget);
    kept.into_iter().map(|place| sentences[place]).collect::<String>().trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: &str = "The depot opens at six. Trucks leave every hour, rain or shine.\n\n\
        The depot opens at six! Rain or shine, trucks leave every hour, as said. \
        Mara holds the key to gate 4. Mara holds the key to gate 5.";

    fn compressed(question: &str, ratio: f64) -> String {
        compress(CONTEXT, question, &Settings { ratio, tokens: None, similarity: 0.7 })
    }

    #[test]
    fn what_was_said_before_goes_and_the_rest_stays_as_it_was() {
        let kept = compressed("", 1.0);
        assert_eq!(kept.matches("depot").count(), 1);
        assert!(
            kept.starts_with("The depot opens at six. Trucks leave every hour, rain or shine.\n\n")
        );
        assert!(kept.ends_with("Mara holds the key to gate 4. Mara holds the key to gate 5."));
    }

    #[test]
    fn a_budget_is_kept_and_spent_on_what_was_asked_first() {
        let kept = compressed("Who has the key to gate 5?", 0.3);
        let total: usize =
            sentences::split(CONTEXT).iter().map(|text| sentences::tokens(text)).sum();
        assert!(kept.contains("gate 5"), "{kept}");
        assert!(sentences::tokens(&kept) <= total * 3 / 10, "{kept}");
    }

    #[test]
    fn an_absolute_budget_outranks_the_ratio_and_an_empty_context_stays_empty() {
        let settings = Settings { ratio: 1.0, tokens: Some(7.0), similarity: 0.7 };
        assert_eq!(compress(CONTEXT, "", &settings), "The depot opens at six.");
        assert_eq!(compress("", "", &settings), "");
    }
}
