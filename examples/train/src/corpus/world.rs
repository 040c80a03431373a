//! The state of one story: its characters, things and places. It is drawn once so that all sentences
//! agree. Also expands sentence templates from it. Does not depend on plots.

use super::random::Random;
use super::words::{
    ANIMALS, Animal, BOYS, COLORS, FOODS, GIRLS, INSIDE, LOOKS, OUTSIDE, Place, TEMPERS, THINGS,
    Thing, WEATHER,
};

/// A character of a story.
pub struct Character {
    /// A name, or none for "the dog".
    pub name: Option<&'static str>,
    /// None for a child.
    pub animal: Option<Animal>,
    pub female: bool,
    /// A child of a fairy tale's king.
    royal: bool,
    pub temper: &'static str,
    /// Whether the text has introduced the character yet.
    mentioned: bool,
}

impl Character {
    fn draw(random: &mut Random, animal_chance: f64, named_chance: f64) -> Self {
        let female = random.chance(0.5);
        let temper = random.pick(TEMPERS);
        if random.chance(animal_chance) {
            let animal = random.pick(ANIMALS);
            let name = random
                .chance(named_chance)
                .then(|| random.pick(animal.names));
            return Self {
                name,
                animal: Some(animal),
                female,
                royal: false,
                temper,
                mentioned: false,
            };
        }
        let name = Some(random.pick(if female { GIRLS } else { BOYS }));
        Self {
            name,
            animal: None,
            female,
            royal: random.chance(0.06),
            temper,
            mentioned: false,
        }
    }

    /// "dog", "girl", "prince".
    pub fn kind(&self) -> &'static str {
        match (self.animal, self.female) {
            (Some(animal), _) => animal.kind,
            (None, true) if self.royal => "princess",
            (None, false) if self.royal => "prince",
            (None, true) => "girl",
            (None, false) => "boy",
        }
    }

    fn key(&self) -> &'static str {
        self.name.unwrap_or(self.kind())
    }
}

/// Everything that a story may mention. Every template slot reads from here.
pub struct World {
    pub hero: Character,
    pub friend: Character,
    pub thing: Thing,
    pub color: &'static str,
    pub look: &'static str,
    pub food: &'static str,
    pub outside: Place,
    pub inside: Place,
    pub spot: &'static str,
    pub inside_spot: &'static str,
    pub weather: &'static str,
    pub parent: &'static str,
    /// The place where somebody is stuck: `in the mud`.
    pub trap: &'static str,
    /// Whether hero and friend have not met before this story.
    pub strangers: bool,
}

impl World {
    /// Draws a random world. Hero and friend differ in name and kind of animal.
    pub fn draw(random: &mut Random) -> Self {
        let hero = Character::draw(random, 0.35, 0.55);
        let friend = loop {
            let animals = if hero.animal.is_some() { 0.8 } else { 0.2 };
            let friend = Character::draw(random, animals, 0.4);
            let same_kind = friend.animal.is_some() && friend.kind() == hero.kind();
            if friend.key() != hero.key() && !same_kind {
                break friend;
            }
        };
        let outside = random.pick(OUTSIDE);
        let inside = random.pick(INSIDE);
        let food = match hero.animal {
            Some(animal) if random.chance(0.7) => animal.food,
            _ => random.pick(FOODS),
        };
        Self {
            thing: random.pick(THINGS),
            color: random.pick(COLORS),
            look: random.pick(LOOKS),
            spot: random.pick(outside.spots),
            inside_spot: random.pick(inside.spots),
            weather: random.pick(WEATHER),
            parent: random.pick::<&str>(if hero.animal.is_some() {
                &["mother", "father", "mother", "big sister", "big brother"]
            } else {
                &[
                    "mom", "dad", "grandma", "grandpa", "sister", "brother", "mom",
                ]
            }),
            trap: random.pick(&[
                "in the mud",
                "in a deep hole",
                "in a net",
                "between two rocks",
            ]),
            strangers: false,
            hero,
            friend,
            food,
            outside,
            inside,
        }
    }

    /// The key that selects held-out stories, together with the name of the plot.
    pub fn key(&self) -> String {
        format!(
            "{} {} {}",
            self.hero.key(),
            self.thing.name,
            self.outside.name
        )
    }

    /// Marks the hero as introduced, for openings that name the hero themselves.
    pub fn hero_mentioned(&mut self) {
        self.hero.mentioned = true;
    }

    /// The text of `template`. `[a|b]` becomes one of its parts; they may be nested. `{slot}` is read
    /// from the world. The first letter becomes upper case, and "a" before a vowel becomes "an".
    pub fn tell(&mut self, random: &mut Random, template: &str) -> String {
        let chosen = choose(random, template);
        let mut text = String::new();
        let mut rest = chosen.as_str();
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}').expect("slot is closed");
            text.push_str(&rest[..open]);
            let word = self.slot(random, &rest[open + 1..close]);
            text.push_str(&word);
            rest = &rest[close + 1..];
        }
        text.push_str(rest);
        capitalize(&articles(&text))
    }

    fn slot(&mut self, random: &mut Random, slot: &str) -> String {
        let hero_female = self.hero.female;
        let pronoun =
            |female: bool, hers: &str, his: &str| String::from(if female { hers } else { his });
        let friend_female = self.friend.female;
        match slot {
            "A" => self.refer_hero(random),
            "B" => self.refer_friend(random),
            "he" | "He" => pronoun(hero_female, "she", "he"),
            "him" => pronoun(hero_female, "her", "him"),
            "his" | "His" => pronoun(hero_female, "her", "his"),
            "hisown" => pronoun(hero_female, "hers", "his"),
            "his2own" => pronoun(friend_female, "hers", "his"),
            "stuck" => self.trap.into(),
            "himself" => pronoun(hero_female, "herself", "himself"),
            "he2" => pronoun(friend_female, "she", "he"),
            "him2" => pronoun(friend_female, "her", "him"),
            "his2" => pronoun(friend_female, "her", "his"),
            "P" => format!("{} {}", pronoun(hero_female, "her", "his"), self.parent),
            "parent" => self.parent.into(),
            "P_s" => format!("{} {}'s", pronoun(hero_female, "her", "his"), self.parent),
            "kind" => self.hero.kind().into(),
            "temper" => self.hero.temper.into(),
            "o" => self.thing.name.into(),
            "ao" => {
                let name = self.thing.name;
                match random.below(10) {
                    0..6 => format!("{} {name}", self.color),
                    6..8 => format!("{} {name}", self.look),
                    _ => format!("{} {} {name}", self.look, self.color),
                }
            }
            "color" => self.color.into(),
            "use" => self.thing.verb.into(),
            "used" => self.thing.past.into(),
            "food" => self.food.into(),
            "thefood" => definite(self.food),
            "place" => self.outside.name.into(),
            "at" => self.outside.at.into(),
            "spot" => self.spot.into(),
            "room" => self.inside.name.into(),
            "inroom" => self.inside.at.into(),
            "roomspot" => self.inside_spot.into(),
            "weather" => self.weather.into(),
            "limb" => self.hero.animal.map_or("knee", |animal| animal.limb).into(),
            "limb2" => self
                .friend
                .animal
                .map_or("knee", |animal| animal.limb)
                .into(),
            other => panic!("no slot named {other}"),
        }
    }

    fn refer_hero(&mut self, random: &mut Random) -> String {
        let first = !std::mem::replace(&mut self.hero.mentioned, true);
        let (kind, temper) = (self.hero.kind(), self.hero.temper);
        match (self.hero.name, self.hero.animal) {
            (Some(name), Some(_)) if first => format!("{name} the {kind}"),
            (Some(name), _) => name.into(),
            (None, _) if first => match random.below(3) {
                0 => format!("a {temper} {kind}"),
                _ => format!("the {temper} {kind}"),
            },
            (None, _) if random.chance(0.4) => format!("the {temper} {kind}"),
            (None, _) => format!("the {kind}"),
        }
    }

    fn refer_friend(&mut self, random: &mut Random) -> String {
        let first = !std::mem::replace(&mut self.friend.mentioned, true);
        let (kind, temper) = (self.friend.kind(), self.friend.temper);
        let his = if self.hero.female { "her" } else { "his" };
        match (self.friend.name, self.friend.animal) {
            (Some(name), Some(_)) if first => format!("{name} the {kind}"),
            (Some(name), None) if first && !self.strangers => {
                if random.chance(0.6) {
                    format!("{his} friend {name}")
                } else {
                    name.into()
                }
            }
            (Some(name), None) if first => format!("a {kind} named {name}"),
            (Some(name), _) => name.into(),
            (None, _) if first => format!("a {temper} {kind}"),
            (None, _) => format!("the {kind}"),
        }
    }
}

/// The definite form of food that was already mentioned: "an apple" becomes "the apple".
fn definite(food: &str) -> String {
    let bare = ["an ", "a ", "some "]
        .iter()
        .find_map(|article| food.strip_prefix(article));
    format!("the {}", bare.unwrap_or(food))
}

/// Resolves the alternatives `[a|b|c]` of a template, including nested ones.
fn choose(random: &mut Random, template: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('[') {
        text.push_str(&rest[..open]);
        let mut depth = 0;
        let mut parts = Vec::new();
        let mut start = open + 1;
        let mut end = rest.len();
        for (at, byte) in rest.bytes().enumerate().skip(open) {
            match byte {
                b'[' => depth += 1,
                b'|' if depth == 1 => {
                    parts.push(&rest[start..at]);
                    start = at + 1;
                }
                b']' => {
                    depth -= 1;
                    if depth == 0 {
                        parts.push(&rest[start..at]);
                        end = at;
                        break;
                    }
                }
                _ => {}
            }
        }
        assert!(
            end < rest.len(),
            "alternatives are not closed in {template}"
        );
        let part = random.pick(&parts);
        text.push_str(&choose(random, part));
        rest = &rest[end + 1..];
    }
    text + rest
}

/// "a" before a word that starts with a vowel becomes "an".
fn articles(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut result = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let vowel = words
            .get(at + 1)
            .is_some_and(|next| next.starts_with(['a', 'e', 'i', 'o', 'u']));
        let article = matches!(*word, "a" | "\"a");
        result.push(if article && vowel {
            format!("{word}n")
        } else {
            (*word).to_string()
        });
    }
    result.join(" ")
}

/// Makes the first letter upper case, also after an opening quotation mark, and every letter that
/// begins a sentence inside the text.
pub fn capitalize(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut pending = true;
    let mut previous = ' ';
    for character in text.chars() {
        if pending && character.is_alphabetic() {
            result.extend(character.to_uppercase());
            pending = false;
        } else {
            result.push(character);
        }
        if matches!(previous, '.' | '!' | '?') && character == ' ' {
            pending = true;
        }
        previous = character;
    }
    result
}
