//! The lexicon: the characters, things and places of stories, and what one does with each thing.
//! It does not depend on plots.

/// Girls' and boys' names.
pub const GIRLS: &[&str] = &[
    "Lily", "Mia", "Anna", "Emma", "Sara", "Lucy", "Ella", "Nina", "Rosa", "Amy", "Zoe", "Molly",
    "Daisy", "Kate", "Jane", "Ruby", "Sue", "Lena", "Ivy", "Clara", "Alice", "Grace", "Maya",
    "Eva",
];
pub const BOYS: &[&str] = &[
    "Tom", "Ben", "Sam", "Max", "Leo", "Tim", "Jack", "Finn", "Paul", "Noah", "Dan", "Billy",
    "Oscar", "Peter", "Adam", "Hugo", "Luke", "Nick", "Theo", "Joe", "Jake", "Bob", "Henry",
    "Charlie",
];

/// An animal that can be a hero: its kind, possible names, and what it likes to eat.
#[derive(Clone, Copy)]
pub struct Animal {
    pub kind: &'static str,
    pub names: &'static [&'static str],
    pub food: &'static str,
    pub limb: &'static str,
}

const fn animal(
    kind: &'static str,
    names: &'static [&'static str],
    food: &'static str,
    limb: &'static str,
) -> Animal {
    Animal {
        kind,
        names,
        food,
        limb,
    }
}

pub const ANIMALS: &[Animal] = &[
    animal("dog", &["Spot", "Rex", "Buddy"], "a bone", "paw"),
    animal("cat", &["Kitty", "Whiskers", "Tiger"], "some fish", "paw"),
    animal("rabbit", &["Hop", "Fluffy", "Clover"], "a carrot", "paw"),
    animal("bear", &["Bruno", "Honey", "Teddy"], "some honey", "paw"),
    animal("fox", &["Red", "Rusty", "Foxy"], "some berries", "paw"),
    animal("bird", &["Pip", "Blue", "Sky"], "some seeds", "wing"),
    animal(
        "duck",
        &["Quacky", "Puddle", "Waddle"],
        "some bread",
        "wing",
    ),
    animal("mouse", &["Squeak", "Tiny", "Nibble"], "some cheese", "paw"),
    animal("squirrel", &["Nutty", "Chip", "Hazel"], "a nut", "paw"),
    animal("frog", &["Hoppy", "Lilypad", "Green"], "some bugs", "leg"),
    animal("turtle", &["Shelly", "Slow", "Toby"], "some lettuce", "leg"),
    animal("pony", &["Star", "Brownie", "Misty"], "an apple", "leg"),
    animal("owl", &["Hoot", "Wise", "Ollie"], "some seeds", "wing"),
    animal("pig", &["Pinky", "Rosie", "Muddy"], "some corn", "leg"),
    animal("lamb", &["Snowy", "Cotton", "Curly"], "some grass", "leg"),
    animal("puppy", &["Spot", "Lucky", "Buddy"], "a bone", "paw"),
    animal("kitten", &["Kitty", "Mittens", "Tiger"], "some milk", "paw"),
    animal("hedgehog", &["Spike", "Prickle"], "some berries", "paw"),
    animal("elephant", &["Ellie", "Gray"], "a banana", "leg"),
    animal("dragon", &["Ember", "Smoky", "Spark"], "an apple", "wing"),
    animal("lion", &["Goldie", "Roary"], "some meat", "paw"),
    animal("goat", &["Billie", "Gruff"], "some grass", "leg"),
    animal("penguin", &["Pingu", "Flip"], "some fish", "wing"),
    animal("horse", &["Star", "Thunder"], "some hay", "leg"),
    animal("monkey", &["Momo", "Coco"], "a banana", "arm"),
];

/// A thing one child can carry: its name and what one does with it, `verb it`, now and past.
#[derive(Clone, Copy)]
pub struct Thing {
    pub name: &'static str,
    pub verb: &'static str,
    pub past: &'static str,
}

const fn thing(name: &'static str, verb: &'static str, past: &'static str) -> Thing {
    Thing { name, verb, past }
}

pub const THINGS: &[Thing] = &[
    thing("ball", "kick", "kicked"),
    thing("kite", "fly", "flew"),
    thing("drum", "play", "played"),
    thing("book", "read", "read"),
    thing("doll", "hug", "hugged"),
    thing("teddy bear", "hug", "hugged"),
    thing("toy car", "push", "pushed"),
    thing("toy boat", "sail", "sailed"),
    thing("toy train", "push", "pushed"),
    thing("hat", "wear", "wore"),
    thing("scarf", "wear", "wore"),
    thing("balloon", "hold", "held"),
    thing("bell", "ring", "rang"),
    thing("whistle", "blow", "blew"),
    thing("hoop", "roll", "rolled"),
    thing("bucket", "fill", "filled"),
    thing("lamp", "carry", "carried"),
    thing("flute", "play", "played"),
    thing("top", "spin", "spun"),
    thing("wagon", "pull", "pulled"),
    thing("sled", "ride", "rode"),
    thing("blanket", "sleep with", "slept with"),
    thing("shell", "look at", "looked at"),
    thing("stone", "look at", "looked at"),
    thing("ring", "wear", "wore"),
    thing("ribbon", "wear", "wore"),
    thing("feather", "look at", "looked at"),
    thing("puzzle", "play with", "played with"),
    thing("robot", "play with", "played with"),
    thing("coat", "wear", "wore"),
];

pub const COLORS: &[&str] = &[
    "red", "blue", "green", "yellow", "white", "brown", "pink", "purple", "orange", "black",
];
pub const LOOKS: &[&str] = &[
    "big", "small", "shiny", "new", "old", "pretty", "funny", "little", "soft", "nice",
];

/// Food that characters share, bake and get as a reward. Each includes its article.
pub const FOODS: &[&str] = &[
    "an apple",
    "a cake",
    "a cookie",
    "some bread",
    "a bowl of soup",
    "a pear",
    "some berries",
    "a carrot",
    "some cheese",
    "a pie",
    "a sandwich",
    "a banana",
    "some nuts",
    "an orange",
    "a big pancake",
    "some grapes",
];

/// A place with the spots where something can lie, hide or be found there.
#[derive(Clone, Copy)]
pub struct Place {
    pub name: &'static str,
    /// `in the park`, `at the beach`.
    pub at: &'static str,
    pub spots: &'static [&'static str],
}

const fn place(name: &'static str, at: &'static str, spots: &'static [&'static str]) -> Place {
    Place { name, at, spots }
}

pub const OUTSIDE: &[Place] = &[
    place(
        "park",
        "in the park",
        &[
            "under a bench",
            "behind the slide",
            "next to the swings",
            "under a tall tree",
        ],
    ),
    place(
        "garden",
        "in the garden",
        &[
            "behind the flowers",
            "under a bush",
            "next to the gate",
            "between the carrots",
        ],
    ),
    place(
        "forest",
        "in the forest",
        &[
            "under a pile of leaves",
            "behind an old tree",
            "next to a mushroom",
            "on a soft bed of moss",
        ],
    ),
    place(
        "beach",
        "at the beach",
        &[
            "in the sand",
            "behind a big rock",
            "near the water",
            "under a towel",
        ],
    ),
    place(
        "field",
        "in the field",
        &[
            "in the tall grass",
            "next to the fence",
            "behind the hay",
            "between the flowers",
        ],
    ),
    place(
        "river",
        "by the river",
        &[
            "under the bridge",
            "behind a rock",
            "in the mud",
            "next to the water",
        ],
    ),
    place(
        "lake",
        "by the lake",
        &[
            "near the boat",
            "behind a bush",
            "in the tall grass",
            "on a flat rock",
        ],
    ),
    place(
        "farm",
        "on the farm",
        &[
            "behind the barn",
            "under the hay",
            "next to the cow",
            "near the well",
        ],
    ),
    place(
        "hill",
        "on the hill",
        &[
            "behind a stone wall",
            "under a tree",
            "in the grass",
            "next to a big rock",
        ],
    ),
    place(
        "playground",
        "at the playground",
        &[
            "under the slide",
            "behind the swings",
            "in the sandbox",
            "next to the bench",
        ],
    ),
    place(
        "yard",
        "in the yard",
        &[
            "behind the shed",
            "under a bush",
            "next to the fence",
            "under the apple tree",
        ],
    ),
    place(
        "meadow",
        "in the meadow",
        &[
            "between the flowers",
            "in the tall grass",
            "next to a little stream",
            "behind a bush",
        ],
    ),
];
pub const INSIDE: &[Place] = &[
    place(
        "kitchen",
        "in the kitchen",
        &[
            "under the table",
            "behind the door",
            "next to the stove",
            "on a high shelf",
        ],
    ),
    place(
        "bedroom",
        "in the bedroom",
        &[
            "under the bed",
            "behind the curtain",
            "in the toy box",
            "under the pillow",
        ],
    ),
    place(
        "barn",
        "in the barn",
        &[
            "under the hay",
            "behind a box",
            "next to the cow",
            "behind the door",
        ],
    ),
    place(
        "attic",
        "in the attic",
        &[
            "in an old box",
            "behind a chair",
            "under a blanket",
            "next to the window",
        ],
    ),
    place(
        "school",
        "at school",
        &[
            "under a desk",
            "behind the door",
            "on the shelf",
            "in a box",
        ],
    ),
    place(
        "library",
        "in the library",
        &[
            "between the books",
            "under a chair",
            "on a low shelf",
            "next to the lamp",
        ],
    ),
    place(
        "shop",
        "in the shop",
        &[
            "behind the door",
            "under the table",
            "on the top shelf",
            "next to a basket",
        ],
    ),
];

/// Weather that suits most plots. Plots that need rain or snow declare it.
pub const WEATHER: &[&str] = &["sunny", "warm", "cloudy", "bright", "beautiful", "quiet"];
pub const TEMPERS: &[&str] = &[
    "little", "kind", "brave", "happy", "shy", "curious", "clever", "quiet", "cheerful", "small",
];
