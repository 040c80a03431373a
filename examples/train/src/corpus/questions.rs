//! Question-answer documents: small facts, and questions about a scene that precedes them.
//! They use no plots.

use super::random::Random;
use super::words::{ANIMALS, COLORS, OUTSIDE};
use super::world::World;

const FACTS: &[(&str, &str)] = &[
    ("What does a cow say?", "A cow says moo."),
    ("What does a dog say?", "A dog says woof."),
    ("What does a cat say?", "A cat says meow."),
    ("What does a duck say?", "A duck says quack."),
    ("What does a sheep say?", "A sheep says baa."),
    ("What does a pig say?", "A pig says oink."),
    ("What color is the sky?", "The sky is blue."),
    ("What color is the grass?", "The grass is green."),
    ("What color is the sun?", "The sun is yellow."),
    ("What color is snow?", "Snow is white."),
    ("What color is the night?", "The night is black."),
    ("Where do fish live?", "Fish live in the water."),
    ("Where do birds live?", "Birds live in a nest."),
    ("Where do bears live?", "Bears live in the forest."),
    ("Where do cows live?", "Cows live on a farm."),
    ("When do we sleep?", "We sleep at night."),
    ("When does the sun shine?", "The sun shines in the day."),
    (
        "When can we see the stars?",
        "We can see the stars at night.",
    ),
    ("What do we do when it rains?", "We take an umbrella."),
    ("What do we wear when it is cold?", "We wear a warm coat."),
    ("What do we say when we get a gift?", "We say thank you."),
    (
        "What do we say when we did something wrong?",
        "We say sorry.",
    ),
    ("What do plants need to grow?", "Plants need water and sun."),
    (
        "What falls from the sky in winter?",
        "Snow falls from the sky in winter.",
    ),
    (
        "What comes after the rain?",
        "After the rain comes a rainbow.",
    ),
    ("Who bakes the bread?", "The baker bakes the bread."),
    ("Who works on a farm?", "The farmer works on a farm."),
    (
        "What is the opposite of big?",
        "The opposite of big is small.",
    ),
    (
        "What is the opposite of hot?",
        "The opposite of hot is cold.",
    ),
    (
        "What is the opposite of happy?",
        "The opposite of happy is sad.",
    ),
    (
        "What is the opposite of fast?",
        "The opposite of fast is slow.",
    ),
    (
        "What is the opposite of day?",
        "The opposite of day is night.",
    ),
    ("Why should we share?", "Sharing makes everyone happy."),
    (
        "Why do we tell the truth?",
        "When we tell the truth, others can trust us.",
    ),
    (
        "Why do we eat?",
        "We eat because we are hungry and want to grow.",
    ),
    (
        "How can I make a friend?",
        "Say hello, be kind, and play together.",
    ),
    (
        "What can I do when I am sad?",
        "You can tell a friend, and the friend will help you.",
    ),
    (
        "What can I do when I am afraid?",
        "Take a deep breath and ask someone for help.",
    ),
];
const NUMBERS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
];

fn form(random: &mut Random, question: &str, answer: &str) -> String {
    match random.below(3) {
        0 => format!("Q: {question}\nA: {answer}"),
        _ => format!("Question: {question}\nAnswer: {answer}"),
    }
}

/// One document: a fact, a sum, an animal's food, or a short scene and a question about it.
#[expect(clippy::too_many_lines, reason = "one arm per kind of document")]
pub fn document(random: &mut Random, world: &mut World) -> String {
    match random.below(10) {
        0..3 => {
            let (question, answer) = random.pick(FACTS);
            form(random, question, answer)
        }
        3 => {
            let (left, right) = (random.below(6), random.below(5));
            let question = format!("What is {} and {}?", NUMBERS[left], NUMBERS[right]);
            let answer = format!(
                "{} and {} is {}.",
                super::world::capitalize(NUMBERS[left]),
                NUMBERS[right],
                NUMBERS[left + right]
            );
            form(random, &question, &answer)
        }
        4 => {
            let animal = random.pick(ANIMALS);
            let question = format!("What does a {} like to eat?", animal.kind);
            let answer = format!(
                "A {} likes to eat {}.",
                animal.kind,
                animal.food.trim_start_matches("some ")
            );
            form(
                random,
                &question
                    .replace("a elephant", "an elephant")
                    .replace("a owl", "an owl"),
                &answer
                    .replace("A elephant", "An elephant")
                    .replace("A owl", "An owl"),
            )
        }
        5 => {
            let (first, second) = (random.pick(COLORS), random.pick(OUTSIDE));
            let question = world.tell(
                random,
                &format!("Who found the {first} {{o}} {}?", second.at),
            );
            world.hero_mentioned();
            let answer = world.tell(
                random,
                &format!("{{A}} found the {first} {{o}} {}.", second.at),
            );
            let scene = world.tell(
                random,
                &format!("{{A}} found a {first} {{o}} {}.", second.at),
            );
            format!("{scene}\n{}", form(random, &question, &answer))
        }
        kind => {
            world.hero_mentioned();
            let scene = world.tell(
                random,
                "{A} [had|got|found] a {color} {o} {at}. {B} [was there too|came to play|wanted to see it].",
            );
            let (question, answer) = match kind {
                6 => ("What color was the {o}?", "The {o} was {color}."),
                7 => ("Where was {A}?", "{A} was {at}."),
                8 => ("Who had the {o}?", "{A} had the {o}."),
                _ => ("What did {A} have?", "{A} had a {color} {o}."),
            };
            let question = world.tell(random, question);
            let answer = world.tell(random, answer);
            format!("{scene}\n{}", form(random, &question, &answer))
        }
    }
}
