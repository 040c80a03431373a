//! The corpus: an endless seeded stream of little stories and question-answer documents.
//! Documents are text; tokens are the responsibility of `bpe` and `batches`.

mod plots;
mod questions;
pub mod random;
mod words;
mod world;

use plots::{Hero, PLOTS, Plot};
use random::Random;
use world::World;

/// The documents to draw. Combinations of hero, thing, place and plot are split by a hash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// 39 of 40 combinations.
    Training,
    /// The 40th, which is never trained on.
    HeldOut,
}

/// Share of documents that are questions and answers.
const QUESTIONS: f64 = 0.1;

/// Draws documents until one belongs to `part`, and returns its text without an end marker.
pub fn document(random: &mut Random, part: Part) -> String {
    loop {
        let mut world = World::draw(random);
        if random.chance(QUESTIONS) {
            if part_of(&world, "questions") == part {
                return questions::document(random, &mut world);
            }
            continue;
        }
        let plot = random.pick(PLOTS);
        let suits = match plot.hero {
            Hero::Anyone => true,
            Hero::Child => world.hero.animal.is_none(),
            Hero::Animal => world.hero.animal.is_some(),
        };
        if suits && part_of(&world, plot.name) == part {
            return story(random, world, &plot);
        }
    }
}

/// The part of a combination, by FNV-1a over plot and world, so that the split is the same for every seed.
fn part_of(world: &World, plot: &str) -> Part {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in plot.bytes().chain(world.key().bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    if (hash >> 32).is_multiple_of(40) {
        Part::HeldOut
    } else {
        Part::Training
    }
}

/// Three to six sentences: an opening with the plot's start, its steps, perhaps a close.
fn story(random: &mut Random, mut world: World, plot: &Plot) -> String {
    world.strangers = plot.meets_stranger();
    world.weather = plot.weather.unwrap_or(world.weather);
    let start = random.pick(plot.starts);
    let (opening, sentences) = opening(random, &world, plot, start);
    if opening.contains("{kind}") {
        world.hero_mentioned();
    }
    let mut text = world.tell(random, &opening);
    let skip = plot.may_skip_first_step() && (sentences > 1 || random.chance(0.4));
    let steps = if skip { &plot.steps[1..] } else { plot.steps };
    for step in steps {
        text.push(' ');
        text.push_str(&sentence(&world.tell(random, step)));
    }
    if sentences == 1 && random.chance(if skip { 0.7 } else { 0.1 }) {
        text.push(' ');
        text.push_str(&sentence(&world.tell(random, plot.close)));
    }
    text
}

/// Ends `text` with a full stop unless it already ends a sentence.
fn sentence(text: &str) -> String {
    let text = text.trim_end();
    let bare = text.strip_suffix('.').unwrap_or(text);
    if bare.ends_with(['.', '!', '?']) || bare.ends_with(['"']) {
        bare.to_string()
    } else {
        format!("{bare}.")
    }
}

/// The first sentences as a template, and their number.
#[expect(
    clippy::too_many_lines,
    reason = "one arm per form of the first sentences"
)]
fn opening(random: &mut Random, world: &World, plot: &Plot, start: &str) -> (String, usize) {
    let named = world.hero.name.is_some();
    // A sentence that introduces the hero says "a little dog named Spot" instead of "Spot the dog".
    let who = match world.hero.name {
        Some(name) => format!("a {{temper}} {{kind}} named {name}"),
        None => "a {temper} {kind}".to_string(),
    };
    let day = match (plot.weather, random.below(6)) {
        (Some("dark"), _) => "One [dark |quiet |]night,",
        (Some(_), _) | (None, 0) => "One {weather} [day|morning],",
        (None, 1) => "One [morning|evening],",
        (None, 2) => "Yesterday,",
        _ => "One day,",
    };
    let rest = start
        .strip_prefix("{S} ")
        .expect("a start begins with its subject");
    let pair = rest.starts_with("and ");
    let later = if pair || !named {
        "{A}"
    } else {
        random.pick(&["{he}", "{he}", "{A}"])
    };
    let (text, sentences) = match random.below(if plot.meets_stranger() { 14 } else { 15 }) {
        0..3 => (format!("{{A}} {rest}."), 1),
        3..6 => (format!("{day} {{A}} {rest}."), 1),
        6..8 if !pair => (
            format!("[Once upon a time,|Once upon a time,|Long ago,] there was {who} who {rest}."),
            1,
        ),
        8 => (
            format!("[Once upon a time,|Once,|A long time ago,] {who} {rest}."),
            1,
        ),
        9..11 => (
            format!("Once upon a time, [there was|there lived] {who}. {day} {later} {rest}."),
            2,
        ),
        11 => (
            format!("There [once ||]was {who}. {day} {later} {rest}."),
            2,
        ),
        12 if named => {
            let name = world.hero.name.unwrap_or_default();
            (
                format!("{name} was a {{temper}} {{kind}}. {day} {later} {rest}."),
                2,
            )
        }
        13 => (
            format!(
                "[In a small village,|In a little house,|Near the {{place}},] there lived {who}. {day} {later} {rest}."
            ),
            2,
        ),
        14 if !pair => (
            format!("{{A}} and {{B}} were [good|best] friends. {day} {{A}} {rest}."),
            2,
        ),
        _ => {
            let time = if plot.weather == Some("dark") {
                "night"
            } else {
                "[day|morning]"
            };
            (format!("It was a {{weather}} {time}. {{A}} {rest}."), 2)
        }
    };
    (text, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_plain_closed_text() {
        let mut random = Random::new(11);
        for _ in 0..20_000 {
            let text = document(&mut random, Part::Training);
            assert!(!text.contains(['{', '}', '[', ']', '|']), "{text}");
            assert!(!text.contains("  ") && !text.contains(".."), "{text}");
            assert!(text.ends_with(['.', '!', '?', '"']), "{text}");
            for article in [" a a", " a e", " a i", " a o", " a u"] {
                assert!(!text.contains(article), "{text}");
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_documents() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [(); 20].map(|()| document(&mut random, Part::Training))
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn stories_keep_who_has_what_where() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let mut world = World::draw(&mut random);
            let hero = world.tell(&mut random, "{A}");
            assert!(
                hero.to_lowercase()
                    .contains(&world.hero.kind().to_lowercase())
                    || world.hero.name.is_some_and(|name| hero.contains(name))
            );
            let [first, second] =
                [(); 2].map(|()| world.tell(&mut random, "{o} {at} {spot} {P} {him}"));
            assert_eq!(first, second);
        }
    }

    #[test]
    fn held_out_combinations_are_few_and_apart() {
        let mut random = Random::new(9);
        let mut held_out = 0;
        for _ in 0..4000 {
            let world = World::draw(&mut random);
            held_out += usize::from(part_of(&world, "a race") == Part::HeldOut);
        }
        assert!((60..140).contains(&held_out), "{held_out} of 4000");
    }
}
