//! The plots: how a story may start and what its sentences tell, as templates over the world.
//! Openings and the number of sentences are chosen in `corpus`. The file is long because it is a table of text.

/// The characters that can be the hero of a plot.
#[derive(Clone, Copy, PartialEq)]
pub enum Hero {
    Anyone,
    Child,
    Animal,
}

/// A story skeleton. In `starts`, `{S}` is the hero as subject: a name or, after an
/// introduction, perhaps a pronoun. Every step is one or two sentences.
#[derive(Clone, Copy)]
pub struct Plot {
    pub name: &'static str,
    pub hero: Hero,
    /// The weather that the plot needs; "dark" for a story at night.
    pub weather: Option<&'static str>,
    pub starts: &'static [&'static str],
    pub steps: &'static [&'static str],
    /// A last sentence that a short story may end with.
    pub close: &'static str,
}

const fn plot(
    name: &'static str,
    hero: Hero,
    weather: Option<&'static str>,
    starts: &'static [&'static str],
    steps: &'static [&'static str],
    close: &'static str,
) -> Plot {
    Plot {
        name,
        hero,
        weather,
        starts,
        steps,
        close,
    }
}

use Hero::{Animal, Anyone, Child};

const FRIENDS: &str = "[From that day on, {A} and {B} were [best|good] friends|{A} and {B} became [best|good] friends|They [played|laughed|had fun] together until the sun went down].";
const HAPPY: &str = "[{A} was [very|so] happy|{A} felt [very happy|proud|so happy] that day|{A} went home with a big smile|It was [a very good day|the best day ever]].";

pub const PLOTS: &[Plot] = &[
    plot(
        "lost and found",
        Anyone,
        None,
        &[
            "{S} lost {his} {ao} {at}",
            "{S} could not find {his} {ao}",
            "{S} was playing with {his} {ao} {at}, but then {he} lost it",
            "{S} took {his} {ao} to the {place}, but [on the way home|at the end of the day] it was gone",
        ],
        &[
            "[{A} looked everywhere, but {he} could not see it|{A} was [very|so] sad and started to cry|{A} looked [here and there|high and low], but the {o} was gone].",
            "[{B} [saw {him} and|heard {him} and] said, \"[Do not worry|Do not be sad], I will help you look.\"|{A} met {B} and asked, \"Have you seen my {o}?\"|{B} came and asked, \"Why are you so sad?\" \"I lost my {o},\" said {A}.]",
            "[They looked together, and {B} found the {o} {spot}|{B} looked {spot}, and there it was|Together they found the {o} {spot}|At last {A} saw something {color} {spot}, and it was the {o}].",
            "[{A} [hugged {B} and said, \"Thank you!\"|thanked {B} and smiled]|\"Thank you for helping me,\" said {A} with a big smile|{A} was so happy that {he} gave {B} a hug].",
        ],
        "[From that day on, {A} took good care of {his} {o}|After that, {A} never left {his} {o} behind again|{A} held the {o} tight all the way home].",
    ),
    plot(
        "finding something",
        Anyone,
        None,
        &[
            "{S} found a {ao} {spot} {at}",
            "{S} found a {ao} {at}",
            "{S} was walking {at} when {he} saw a {ao}",
            "{S} saw a {ao} {spot} {at}",
        ],
        &[
            "[{He} picked it up and wondered who had lost it|\"Whose {o} is this?\" {he} asked|{He} wanted to keep it, but {he} knew that it was not {hisown}|It was not {his} {o}, so {he} asked everyone about it].",
            "[Then {A} saw {B}, who was [looking for something|very sad]|Soon {he} met {B}, who was crying|{B} came by and looked very sad].",
            "[\"Is this your {o}?\" asked {A}. \"Yes, it is!\" said {B}|\"I lost my {o},\" said {B}. \"Here it is,\" said {A}|{A} gave the {o} back, and {B} jumped for joy|{B} said that the {o} was {his2own}, so {A} gave it back].",
            "[{B} was so happy that {he2} let {A} {use} it too|\"Thank you,\" said {B}. \"Do you want to play with me?\"|{B} smiled and said, \"You are very kind.\"]",
        ],
        FRIENDS,
    ),
    plot(
        "keeping a find",
        Anyone,
        None,
        &[
            "{S} found a {ao} {spot} {at}",
            "{S} found a {ao} {roomspot} {inroom}",
            "{S} went to the {place} and found a {ao}",
        ],
        &[
            "[It was the nicest {o} {he} had ever seen|{He} was very excited and picked it up|{He} had never seen such a nice {o} before].",
            "[{He} ran home to show it to {P}|{He} showed it to {P}|{He} took it to {P} and asked, \"Can I keep it?\"]",
            "[\"What a nice {o}!\" said {P}. \"You can keep it.\"|{His} {parent} smiled and said, \"That is a very nice {o}.\"|{His} {parent} cleaned the {o} and gave it back to {him}.]",
            "[{A} {used} it all day|{A} {used} it every day after that|{A} showed the {o} to {B}, and they played together].",
        ],
        HAPPY,
    ),
    plot(
        "sharing food",
        Anyone,
        None,
        &[
            "{S} had {food} for lunch",
            "{S} was sitting {at} with {food}",
            "{S} took {food} to the {place}",
            "{S} wanted to eat {food} {at}",
        ],
        &[
            "[Then {B} came by and looked very hungry|{He} saw {B}, who had nothing to eat|{B} sat next to {him} and was very hungry|{He} was about to eat when {he} saw that {B} had no food].",
            "[\"Can I have some, please?\" asked {B}|\"I am so hungry,\" said {B}|{B} looked at {thefood} with big eyes|\"Are you hungry?\" asked {A}, and {B} nodded].",
            "[{A} gave {B} half of {thefood}|\"We can share,\" said {A}, and {he} gave half of it to {B}|{A} thought for a moment and then shared {thefood} with {B}].",
            "[\"Thank you, you are very kind,\" said {B}|It tasted even better because they ate it together|They ate together and watched the birds|{B} smiled, and {A} smiled too].",
        ],
        "[{A} learned that sharing makes everyone happy|{A} and {B} became good friends|It is good to share with others].",
    ),
    plot(
        "hungry",
        Animal,
        None,
        &[
            "{S} was [very|so] hungry",
            "{S} was hungry and had nothing to eat",
            "{S} woke up and wanted something to eat",
            "{S} was looking for food {at}",
        ],
        &[
            "[{He} looked {spot}, but there was no food|{He} went to the {place}, but {he} found nothing to eat|{He} walked and walked, but {he} could not find any food].",
            "[Then {he} met {B}, who had {food}|{B} saw {him} and asked, \"What is wrong?\" \"I am hungry,\" said {A}|Then {he} saw {B} with {food}].",
            "[\"You can have some of my food,\" said {B}|{B} was kind and gave {him} {food}|\"Come and eat with me,\" said {B}].",
            "[{A} ate it all and said, \"Thank you.\"|{A} ate until {he} was full|They ate together and told each other funny stories].",
        ],
        "[{A} was not hungry anymore|After that, {A} and {B} ate together every day|{A} was happy to have such a kind friend].",
    ),
    plot(
        "sharing a toy",
        Child,
        None,
        &[
            "{S} and {B} were playing {at}, and both wanted the {ao}",
            "{S} had a {ao}, and {B} wanted to {use} it too",
            "{S} got a {ao}, but {he} did not want to share it with {B}",
        ],
        &[
            "[\"It is mine!\" said {A}|\"I want the {o}!\" said {B}. \"No, I had it first,\" said {A}|{A} held the {o} tight and said, \"No!\"]",
            "[{B} was sad and [started to cry|went away]|{B} sat down alone and was very sad|They pulled and pulled, and the {o} fell [down|on the ground]].",
            "[{His} {parent} said, \"You can take turns.\"|{A} saw that {B} was sad, and {he} felt sorry|\"Sharing is more fun,\" said {P}].",
            "[So {A} gave the {o} to {B} and said, \"You can {use} it first.\"|{A} said, \"I am sorry. We can play together.\"|First {B} {used} it, and then {A} {used} it].",
        ],
        "[They had a lot of fun together|{A} learned that it is more fun to share|They smiled and played together all day].",
    ),
    plot(
        "afraid of the dark",
        Anyone,
        Some("dark"),
        &[
            "{S} was afraid of the dark",
            "{S} could not sleep because it was dark",
            "{S} heard a strange noise in the night",
            "{S} was in bed and heard a loud noise",
        ],
        &[
            "[{He} hid under the blanket|\"I am scared,\" {he} said in a small voice|{He} thought that there was a monster under the bed].",
            "[{His} {parent} came and [sat next to {him}|gave {him} a hug]|{He} called {P}, who came with a lamp|{His} {parent} came with a little light].",
            "[\"It is only the wind,\" said {P}|They looked together, and it was only [a cat|a mouse|the wind|an old coat]|\"Look, there is nothing to be afraid of,\" said {P}].",
            "[{A} laughed and was not afraid anymore|{A} felt safe and closed {his} eyes|{A} felt brave and soon fell asleep].",
        ],
        "[{He} slept well all night|After that, {A} was not afraid of the dark|{A} dreamed of [the stars|a big {color} balloon|the moon]].",
    ),
    plot(
        "afraid of water",
        Anyone,
        None,
        &[
            "{S} was afraid of the water",
            "{S} went to the lake, but {he} was afraid to swim",
            "{S} wanted to swim, but {he} was scared of the water",
        ],
        &[
            "[{He} only sat on a rock and watched the others|\"The water is too deep,\" {he} said|{He} put one foot in the water and jumped back].",
            "[{B} swam to {him} and said, \"Come in, I will stay with you.\"|\"Do not be afraid,\" said {B}. \"I will help you.\"|{B} held out a hand and said, \"We can go in slowly.\"]",
            "[{A} took a deep breath and went into the water|Slowly, {A} took one step and then one more|{A} was still scared, but {he} tried].",
            "[Soon {he} was swimming and laughing|The water was warm, and {he} began to swim|\"I can do it!\" {he} shouted].",
        ],
        "[{A} was proud of {himself}|{A} was not afraid of the water anymore|Being brave felt very good].",
    ),
    plot(
        "afraid of thunder",
        Anyone,
        Some("rainy"),
        &[
            "{S} was afraid of the thunder",
            "{S} heard loud thunder and ran inside",
            "{S} was playing {at} when a big storm came",
        ],
        &[
            "[{He} hid under the table and shook with fear|The thunder was very loud, and {he} began to cry|Boom! {He} jumped and covered {his} ears].",
            "[{B} came and sat next to {him}|{B} was there too and said, \"It is only a noise.\"|{B} held {him} and said, \"It will be over soon.\"]",
            "[They sang a song together until the storm was over|They counted the booms and laughed|They told each other stories until it was quiet].",
            "[Then the sun came out, and there was a big rainbow|Soon the rain stopped, and they saw a rainbow in the sky|When the storm was gone, they went out to jump in the puddles].",
        ],
        "[{A} was not afraid of thunder anymore|{A} thanked {B} for being so kind|{A} was happy to have such a good friend].",
    ),
    plot(
        "a small accident",
        Anyone,
        None,
        &[
            "{S} was running {at} and fell down",
            "{S} climbed a tree {at} and fell",
            "{S} hurt {his} {limb} {at}",
            "{S} ran too fast and fell over a stone",
        ],
        &[
            "[{He} hurt {his} {limb} and began to cry|\"Ouch!\" {he} cried. \"My {limb} hurts!\"|{His} {limb} hurt a lot, and {he} could not get up].",
            "[{B} heard {him} and ran to help|{B} came quickly and asked, \"Are you okay?\"|{B} saw what happened and came to help {him}].",
            "[{B} washed the {limb} and put a bandage on it|{B} helped {him} up and took {him} home|{B} got some water and a clean bandage].",
            "[\"Thank you, I feel better now,\" said {A}|Soon {A} felt better and could smile again|{A} felt much better and gave {B} a hug].",
        ],
        "[After that, {A} was more careful|From that day on, {A} was always careful|{A} never did that again].",
    ),
    plot(
        "helping a hurt one",
        Anyone,
        None,
        &[
            "{S} saw {B} {at}, who could not walk",
            "{S} heard someone cry {spot} {at}",
            "{S} found {B} {spot} {at}",
        ],
        &[
            "[It was {B}, who had hurt {his2} {limb2}|{B} had a hurt {limb2} and was very sad|\"Help me, please,\" said {B}. \"My {limb2} hurts.\"]",
            "[{A} did not wait and ran to get help|\"Do not be afraid,\" said {A}. \"I will help you.\"|{A} put a soft bandage on the {limb2}].",
            "[{He} took {B} home and gave {him2} some water|{He} carried {B} home and made a warm bed|{A} stayed with {B} until {P} came].",
            "[The next day, {B} felt much better|After a few days, {B} could run and play again|Soon {B} was well and said, \"Thank you for saving me.\"]",
        ],
        FRIENDS,
    ),
    plot(
        "building",
        Child,
        None,
        &[
            "{S} wanted to build a [tree house|big tower|little house|boat|bird house]",
            "{S} was building a tower with blocks {inroom}",
            "{S} wanted to make a sand castle",
        ],
        &[
            "[But it fell down, and {he} was sad|It was very hard, and everything fell down|{He} tried and tried, but it did not work].",
            "[{B} saw it and said, \"I can help you.\"|{B} came and asked, \"Can we do it together?\"|\"Do not give up,\" said {B}. \"Let us try again.\"]",
            "[{A} and {B} worked together all day|{B} held it while {A} put the pieces together|This time they made it strong and went slowly].",
            "[When it was done, they were very proud|At last it was big and strong and did not fall|{His} {parent} looked at it and said, \"You did a great job!\"]",
        ],
        "[They played with it until it was dark|{A} learned that it is easier to work together|{A} and {B} smiled at each other].",
    ),
    plot(
        "a snowman",
        Child,
        Some("snowy"),
        &[
            "{S} wanted to build a snowman",
            "{S} went out to play in the snow",
            "{S} looked out of the window and saw snow",
        ],
        &[
            "[{He} put on {his} coat and called {B}|{B} came to play with {him}|{He} asked {B} to help {him}].",
            "[They rolled a big ball and a small ball of snow|They made a big snowman together|{A} made the body, and {B} made the head].",
            "[They gave it a carrot for a nose and a {color} hat|{B} found a carrot for the nose, and {A} found a {color} hat|{A} put a {color} scarf around its neck].",
            "[Then they went inside and drank hot milk|\"It is the best snowman ever!\" said {B}|They were cold, so {P} gave them hot soup].",
        ],
        "[They waved to the snowman from the window|{A} hoped that the snow would stay|They were tired but very happy].",
    ),
    plot(
        "making a friend",
        Anyone,
        None,
        &[
            "{S} was lonely and had no one to play with",
            "{S} was sad because {he} had no friends",
            "{S} wanted to have a friend",
            "{S} sat alone {at}",
        ],
        &[
            "[{He} looked up and saw {B}|Then {B} came to the {place}|One morning, {he} met {B} {at}].",
            "[\"Hello, do you want to play with me?\" asked {A}|\"Hi, can I play with you?\" asked {B}|{A} was shy, but {he} said hello|{B} smiled and said, \"Hello! What is your name?\"]",
            "[They ran after a {color} ball and laughed|They played with a {ao} and laughed a lot|They ran and jumped and played all day].",
            "[\"Will you be my friend?\" asked {A}. \"Yes!\" said {B}|\"You are my friend now,\" said {B}|When it was time to go home, they said, \"See you tomorrow!\"]",
        ],
        "[{A} was not lonely anymore|From that day on, they played together every day|Now {A} had a real friend].",
    ),
    plot(
        "not listening",
        Child,
        Some("cold"),
        &[
            "{S} wanted to play outside, but it was cold",
            "{S} did not want to wear {his} coat",
            "{S} ran out into the cold without a coat",
        ],
        &[
            "[\"Put on your coat,\" said {P}, but {he} did not listen|{His} {parent} said, \"You will get cold,\" but {A} only laughed|\"I do not need a coat,\" said {A}].",
            "[Soon {he} was very cold and began to shake|The wind blew, and {A} became cold and wet|After a while, {his} nose was red and {his} hands were cold].",
            "[{He} ran home, and {P} gave {him} a warm blanket|{He} went back inside, and {P} made {him} some hot soup|{His} {parent} gave {him} a hug and a cup of hot milk].",
            "[\"I am sorry, I should have listened,\" said {A}|\"Next time I will wear my coat,\" said {A}|{A} said sorry, and {P} smiled].",
        ],
        "[After that, {A} always listened to {P}|{A} learned to listen|The next day, {A} put on {his} coat before going out].",
    ),
    plot(
        "too much",
        Anyone,
        None,
        &[
            "{S} ate too many cookies",
            "{S} saw a big cake on the table and ate it all",
            "{S} wanted to eat all the [berries|candy|cookies]",
        ],
        &[
            "[\"Do not eat too much,\" said {P}, but {he} did not listen|{He} ate and ate until there was nothing left|{He} did not leave anything for {B}].",
            "[Soon {his} tummy hurt, and {he} had to lie down|Then {he} felt sick and could not play|\"Oh no, my tummy hurts,\" said {A}].",
            "[{His} {parent} gave {him} some tea and sat with {him}|{B} came to play, but {A} had to stay in bed|{His} {parent} said, \"Now you know why.\"]",
            "[{A} said, \"I will not do that again.\"|\"Next time I will share,\" said {A}|The next day, {A} felt better and said sorry].",
        ],
        "[{A} learned that too much is not good|From that day on, {A} ate only a little|After that, {A} always shared {his} food].",
    ),
    plot(
        "a gift",
        Anyone,
        None,
        &[
            "{S} wanted to make a gift for {P}",
            "{S} knew that it was {P_s} birthday",
            "{S} wanted to give {P} a surprise",
        ],
        &[
            "[But {he} had no money|{He} thought and thought about what to give|{He} did not know what to do, so {he} asked {B}].",
            "[{He} picked flowers {at} and tied them with a {color} ribbon|{He} painted a picture of a {color} {o}|{He} and {B} made a {ao} from paper].",
            "[{He} hid it {roomspot} and waited|{He} ran home and said, \"This is for you!\"|In the evening, {he} gave it to {P}].",
            "[{His} {parent} smiled and gave {him} a big hug|\"It is the best gift ever,\" said {P}|\"Thank you, I love it!\" said {P}].",
        ],
        "[{A} felt warm and happy inside|They ate cake together|{A} was proud of the gift].",
    ),
    plot(
        "stuck",
        Anyone,
        None,
        &[
            "{S} heard a cry for help {at}",
            "{S} saw that {B} was stuck {stuck} {at}",
            "{S} was walking {at} when {he} saw {B} in trouble",
        ],
        &[
            "[{B} could not get out|\"Help! I am stuck {stuck}!\" cried {B}|{B} could not move and was very scared].",
            "[{A} found a long [rope|stick]|{A} tried to pull, but it was too hard|\"Wait, I will help you!\" said {A}].",
            "[{He} pulled with all {his} strength until {B} was free|{He} called {P}, and together they pulled {B} out|{He} pulled and pulled, and at last {B} was free].",
            "[\"You saved me!\" said {B}. \"Thank you.\"|{B} thanked {him} and gave {him} {food}|{B} was safe and very thankful].",
        ],
        FRIENDS,
    ),
    plot(
        "learning to do it",
        Anyone,
        None,
        &[
            "{S} wanted to learn to [swim|sing|dance|jump far|whistle]",
            "{S} tried to learn a new song",
            "{S} wanted to jump over the stream",
        ],
        &[
            "[It was very hard, and {he} could not do it|{He} tried, but it did not work|The first time, it went wrong, and {he} was sad].",
            "[\"Do not give up,\" said {B}. \"Try again.\"|{B} showed {him} how to do it|\"I will help you,\" said {B}].",
            "[{A} tried again and again|Every day {he} tried a little more|{He} practiced all week].",
            "[At last {he} could do it|One day, {he} did it all alone|\"Look, I can do it!\" {he} shouted].",
        ],
        "[{A} was very proud|{B} clapped and cheered|{A} learned to never give up].",
    ),
    plot(
        "riding a bike",
        Child,
        None,
        &[
            "{S} got a {color} bike",
            "{S} wanted to ride {his} {color} bike",
            "{S} could not ride a bike yet",
        ],
        &[
            "[The first time, {he} fell off and hurt {his} knee|{He} was scared to fall|It was hard, and the bike fell over].",
            "[{His} {parent} held the bike and said, \"I am here.\"|\"Try again, I will hold you,\" said {P}|{B} said, \"You can do it!\"]",
            "[{A} tried again and again {at}|{A} got back on the bike and tried once more|{A} looked ahead and went very slowly].",
            "[Then {he} was riding all alone|Soon {he} could ride all the way to the {place}|\"I can ride!\" {he} shouted].",
        ],
        "[{A} was so proud|Now {he} rides {his} bike every day|{His} {parent} clapped and smiled].",
    ),
    plot(
        "rain",
        Anyone,
        Some("rainy"),
        &[
            "{S} was playing {at} when it started to rain",
            "{S} wanted to go out, but it was raining",
            "{S} looked at the gray sky and felt the rain",
        ],
        &[
            "[{He} was sad because {he} could not play outside|{He} got wet and looked for a dry place|\"Oh no, I am all wet,\" {he} said].",
            "[{B} came with a big {color} umbrella|{B} said, \"Come, we can sit under this big leaf.\"|{He} saw {B} under a tree and ran there].",
            "[They waited together and listened to the rain|They told each other stories until the rain stopped|They jumped in the puddles and laughed].",
            "[Then the sun came out, and they saw a rainbow|When the rain stopped, there was a rainbow over the {place}|Soon the sky was blue again, and they could play].",
        ],
        HAPPY,
    ),
    plot(
        "planting",
        Anyone,
        None,
        &[
            "{S} planted a seed in the garden",
            "{S} found a tiny seed {at}",
            "{S} got a little seed from {P}",
        ],
        &[
            "[{He} put it in the ground and gave it water|Every day {he} gave it some water|{He} waited and waited, but nothing came].",
            "[\"Be patient,\" said {P}|\"It needs time and sun,\" said {B}|{B} helped {him} to water it].",
            "[One morning, there was a small green leaf|After some days, a little plant came out of the ground|It grew and grew in the warm sun].",
            "[Soon there was a beautiful {color} flower|In the end, it was a big {color} flower, taller than {A}|It became a tree with sweet apples].",
        ],
        "[{A} learned to be patient|{A} showed it to everyone|{A} shared the joy with {B}].",
    ),
    plot(
        "telling the truth",
        Child,
        None,
        &[
            "{S} broke a cup in the kitchen",
            "{S} was playing with a ball inside and broke a {color} cup",
            "{S} broke the {ao} of {P}",
        ],
        &[
            "[{He} was afraid and hid the pieces {roomspot}|{He} did not know what to do|\"Oh no,\" {he} said and began to cry].",
            "[\"What happened?\" asked {P}|{His} {parent} came in and saw that something was wrong|{B} said, \"You should tell the truth.\"]",
            "[{A} said, \"I broke it. I am sorry.\"|{A} looked down and told the truth|{A} was scared, but {he} told {P} everything].",
            "[\"Thank you for telling the truth,\" said {P}|{His} {parent} was not angry and gave {him} a hug|\"We can fix it together,\" said {P}, and they did].",
        ],
        "[{A} felt much better|{A} learned that it is good to tell the truth|After that, {A} always told the truth].",
    ),
    plot(
        "baking",
        Child,
        None,
        &[
            "{S} wanted to bake a cake with {P}",
            "{S} and {P} were baking [cookies|a cake|a pie|bread]",
            "{S} helped {P} in the kitchen",
        ],
        &[
            "[They mixed [flour|eggs], milk and sugar in a big bowl|{A} stirred, and {P} added some sugar|{A} got flour on {his} nose, and {P} laughed].",
            "[Then they put it in the oven and waited|It smelled so good that {B} came to the door|{A} watched the oven and waited].",
            "[When it was ready, it was warm and sweet|\"It smells so good,\" said {A}|They let it cool by the window].",
            "[They shared it with {B} and ate it all|{A} took a piece to {B}|\"This is the best thing I ever ate,\" said {B}].",
        ],
        HAPPY,
    ),
    plot(
        "a race",
        Animal,
        None,
        &[
            "{S} wanted to race with {B}",
            "{S} said that {he} was faster than {B}",
            "{S} and {B} had a race {at}",
        ],
        &[
            "[\"I will win,\" said {A} and ran very fast|They started at the big tree and ran|Everyone came to watch the race].",
            "[On the way, {B} fell and hurt {his2} {limb2}|{A} was so fast that {he} stopped to sleep|Then {A} saw that {B} had fallen down].",
            "[{A} stopped and went back to help|{B} went slowly, but {he2} did not stop|{A} looked back and saw {B} far behind].",
            "[In the end, they crossed the line together|\"We both win,\" said {A}|They laughed and said that it was a good race].",
        ],
        "[Being friends was better than winning|{A} learned that winning is not everything|After the race, they ate together].",
    ),
    plot(
        "a secret box",
        Anyone,
        None,
        &[
            "{S} found a small key {spot} {at}",
            "{S} found an old box {roomspot} {inroom}",
            "{S} found an old map {roomspot} {inroom}",
        ],
        &[
            "[{He} showed it to {B}, and they were very curious|\"What could it be?\" asked {B}|{He} asked {B} what it was for].",
            "[They went to the {place} and looked {spot}|They looked everywhere and found a little door|Together they opened it slowly].",
            "[Inside, there was a {ao}|There they found a {ao}|They opened it and saw a {ao}].",
            "[\"We can share it,\" said {A}|{A} let {B} {use} it first|They {used} it together and laughed].",
        ],
        "[It was their secret|It was a great adventure|They were happy all day].",
    ),
    plot(
        "helping with work",
        Anyone,
        None,
        &[
            "{S} saw {B} [at work|with a lot to carry] {at}",
            "{S} saw that {B} had a lot of work to do",
            "{S} wanted to help {B} {at}",
        ],
        &[
            "[There was a heavy basket that had to go up the hill|There was a lot to carry, and it was very heavy|\"This is too heavy,\" said {B}].",
            "[\"I can help you,\" said {A}|{A} took one side of a heavy basket|{A} was small but strong, and {he} helped].",
            "[They worked until everything was done|Together they carried everything away|Step by step, they did it together].",
            "[As a thank you, {A} got {food}|\"You are a great help,\" said {B} and gave {him} {food}|{A} got {food} and a warm smile].",
        ],
        "[{A} was tired but happy|{A} learned that helping feels good|{A} came back to help the next day].",
    ),
    plot(
        "lost the way",
        Anyone,
        None,
        &[
            "{S} went into the forest and lost {his} way",
            "{S} walked too far from home",
            "{S} followed a {color} butterfly and got lost",
        ],
        &[
            "[It got dark, and {he} was scared|{He} did not know where {he} was and began to cry|{He} looked around, but all the trees looked the same].",
            "[Then {he} met {B}, who knew the way|{B} heard {him} and came closer|{B} asked, \"Are you lost?\" \"Yes, I want to go home,\" said {A}].",
            "[\"Follow me,\" said {B}, and they walked together|{B} showed {him} the way home|They followed the little stream until they saw the house].",
            "[{A}'s {parent} was so happy to see {him}|At home, {P} hugged {him} and gave {B} {food}|\"Thank you, {B},\" said {A} and waved].",
        ],
        "[After that, {A} never went so far alone|{A} was happy to be home|{A} and {B} became friends].",
    ),
    plot(
        "the wind takes it",
        Anyone,
        Some("windy"),
        &[
            "{S} was playing with a {color} [kite|balloon] {at}",
            "{S} got a {color} balloon from {P}",
            "{S} went out to fly a {color} kite",
        ],
        &[
            "[Then the wind took it, and it flew into a tall tree|A strong wind came and took it away|It flew up and up until it got stuck in a tree].",
            "[{A} jumped, but {he} could not reach it|\"Come back!\" cried {A}|{A} was sad and looked up at the sky].",
            "[{B} climbed up and got it down|{B} came with a long stick and helped {him}|{B} saw it and brought it back].",
            "[\"Thank you!\" said {A} with a smile|{A} was happy and let {B} hold it too|Then they played with it together].",
        ],
        "[After that, {A} held it very tight|They laughed in the wind|It was a wonderful day].",
    ),
    plot(
        "playing together",
        Anyone,
        None,
        &[
            "{S} and {B} were playing with a {color} ball {at}",
            "{S} and {B} went to the {place} to play",
            "{S} was playing ball with {B} {at}",
            "{S} went to the {place} to play with {B}",
        ],
        &[
            "[They threw the ball high, and it fell into a stream|{A} kicked the ball so hard that it flew over a wall|The ball rolled away and fell into a deep hole].",
            "[\"Oh no, our ball!\" cried {B}|{B} was sad and said, \"Now we can not play.\"|\"What can we do?\" asked {A}.]",
            "[{A} found a long stick and got the ball back|{A} had an idea and asked a tall man for help|They held hands, and {A} reached for the ball until {he} had it].",
            "[\"You are so clever,\" said {B}|Then they played until the sun went down|They laughed and played again].",
        ],
        "[It was a wonderful day|{A} and {B} were very happy|They walked home together].",
    ),
    plot(
        "cheering up",
        Anyone,
        None,
        &[
            "{S} was [very|so] sad",
            "{S} was sad because {his} {o} was broken",
            "{S} was sad because {he} had a bad day",
            "{S} saw that {B} was sad",
        ],
        &[
            "[{B} sat down, and {A} sat next to {him2}|{A} and {B} sat {at} and said nothing|{A} went to the {place}, and {B} was there].",
            "[{B} told a funny joke|{A} made a funny face, and {B} did the same|{B} said, \"Let us sing a song.\"]",
            "[They laughed so hard that they fell down|{A} had to laugh, and {B} laughed too|Soon they were singing and dancing].",
            "[\"Thank you, I feel much better,\" said {A}|All the sad feelings were gone|\"You are a good friend,\" said {A}].",
        ],
        "[A good friend can make every day better|{A} was happy again|They shared {food} and went home].",
    ),
    plot(
        "a birthday",
        Anyone,
        None,
        &[
            "{S} was happy because it was {his} birthday",
            "{S} was very excited because it was {his} birthday",
            "{S} had a birthday and wanted to have a party",
        ],
        &[
            "[{His} {parent} made a big cake with candles|{He} waited for {his} friends to come|There was a big cake on the table].",
            "[{B} came with a big box|{B} came and said, \"Happy birthday! This is for you.\"|Then {B} came with a gift in a {color} box].",
            "[{A} opened it and found a {ao}|In the box, there was a {ao}|It was a {ao}].",
            "[\"Thank you! I love it!\" said {A}|\"It is just what I wanted,\" said {A}|{A} gave {B} a hug and a big piece of cake].",
        ],
        "[They danced and played until night|It was the best birthday ever|{A} {used} it all day].",
    ),
    plot(
        "a wish",
        Anyone,
        Some("dark"),
        &[
            "{S} saw a falling star and made a wish",
            "{S} looked at the moon and made a wish",
            "{S} could not sleep and looked at the stars",
        ],
        &[
            "[{He} wished for a {ao}|\"I wish I had a friend,\" {he} said|{He} wished that {he} could fly to the moon].",
            "[In the morning, {he} went to the {place}|The next day, {he} woke up early and ran outside|{He} told {P} about it, and {P} smiled].",
            "[There stood {B} with a {ao}|{B} was there and gave {him} a {ao}|Then {B} came to the door with a {ao}].",
            "[\"Do you want to {use} it with me?\" asked {B}|\"This is for you,\" said {B}|\"It is like my wish!\" said {A}].",
        ],
        "[{A} knew that wishes can come true|{A} looked up at the sky and said thank you|It was like magic].",
    ),
    plot(
        "a baby bird",
        Child,
        None,
        &[
            "{S} found a baby bird {spot} {at}",
            "{S} saw that a baby bird had fallen out of its nest",
            "{S} heard a small bird cry {at}",
        ],
        &[
            "[It was too small to fly|The little bird was cold and scared|It was all alone and very hungry].",
            "[{A} called {P}, and they looked for the nest|{A} picked it up with soft hands|\"We have to help it,\" {he} said to {B}].",
            "[{B} held the ladder while {A} climbed up|They gave it some water and some seeds|{A} put it in a small box with warm hay].",
            "[Then {he} put the bird back into its nest|Soon its mother came, and the bird was safe|After some days, the bird could fly and sang for {him}].",
        ],
        "[{A} waved and smiled|Every morning, the bird sang at the window|{A} was happy that the bird was safe].",
    ),
    plot(
        "music",
        Anyone,
        None,
        &[
            "{S} wanted to make music",
            "{S} heard music {at}",
            "{S} got a {color} [drum|flute|bell] and played it all day",
        ],
        &[
            "[But it was too loud, and everyone covered their ears|At first it did not sound good|{He} did not know how to play].",
            "[{B} liked the music and began to dance|\"May I play with you?\" asked {B}|{B} said, \"Play it slowly.\"]",
            "[{A} played, and {B} sang a happy song|They practiced together every day|Together it sounded very nice].",
            "[Soon all the animals came to listen|Everyone clapped and asked for more|In the evening, they played for everyone {at}].",
        ],
        "[{A} and {B} were very proud|It was the best music ever|They played until the moon came up].",
    ),
    plot(
        "at the market",
        Child,
        None,
        &[
            "{S} went to the market with {P}",
            "{S} had one coin and went to the market",
            "{S} wanted to buy a {ao} at the market",
        ],
        &[
            "[There were so many nice things|{He} saw a {ao} and wanted to have it|{He} looked at the toys and the sweet cakes].",
            "[But {he} did not have enough money|Then {he} saw {B}, who was crying because {he2} had no food|{He} thought for a long time about what to buy].",
            "[{A} bought some bread and shared it with {B}|{A} helped the baker to carry the bread and got a coin|{A} gave {his} coin to {B}].",
            "[The baker saw it and gave {him} a sweet cake|\"You have a good heart,\" said {P}|{A} went home with {food}].",
        ],
        HAPPY,
    ),
    plot(
        "a new pet",
        Child,
        None,
        &[
            "{S} wanted to have a [puppy|kitten|rabbit]",
            "{S} asked {P} for a pet",
            "{S} saw a lonely puppy {at}",
        ],
        &[
            "[\"A pet needs food and love,\" said {P}|\"You have to take care of it,\" said {P}|{His} {parent} thought about it for a long time].",
            "[One day, there was a box with a {color} ribbon at the door|The next day, {P} came home with a big box|{A} promised to take good care of it].",
            "[Inside was a small [white|brown|black] puppy|A little kitten jumped out of it|{A} opened it and saw two big eyes].",
            "[{A} gave it water and a soft bed|It ran to {him} and licked {his} face|\"You are my best friend,\" said {A}].",
        ],
        "[They played together every day|{A} loved it very much|At night, it slept next to {his} bed].",
    ),
    plot(
        "painting",
        Anyone,
        None,
        &[
            "{S} wanted to paint a picture of {B}",
            "{S} was painting a picture {at}",
            "{S} got new paint and a brush",
        ],
        &[
            "[But the {color} paint fell on the floor|{He} was very happy, but then {color} paint fell on the picture|{B} came by and knocked over the {color} paint].",
            "[\"Oh no, my picture!\" cried {A}|There was a big {color} spot on the picture|{A} was sad because it did not look good].",
            "[{B} looked at it and said, \"It looks like a {color} flower.\"|{B} had an idea and added two wings to the spot|\"We can make something new,\" said {B}].",
            "[Together they made a big {color} butterfly|{A} smiled and painted a whole garden of flowers|In the end, it was more beautiful than before].",
        ],
        "[{His} {parent} put it on the wall|{A} learned that a mistake can become something good|They were proud of their picture].",
    ),
    plot(
        "hide and seek",
        Anyone,
        None,
        &[
            "{S} and {B} played hide and seek {at}",
            "{S} was playing hide and seek with {B} {at}",
            "{S} wanted to play hide and seek with {B} {at}",
        ],
        &[
            "[{A} counted to ten, and {B} ran away to hide|{B} closed {his2} eyes and counted to ten|\"One, two, three,\" counted {A}].",
            "[Then they looked everywhere, but it was not easy|It was very quiet|A bird sang, and the wind moved the leaves].",
            "[At last, someone laughed {spot}|There was a small noise {spot}|Then something moved {spot}].",
            "[\"I found you!\" they both shouted|They laughed so hard that they fell down|\"That was fun, let us play again,\" said {A}].",
        ],
        "[They played until it was time for dinner|It was the best game ever|They went home tired and happy].",
    ),
    plot(
        "the sick friend",
        Anyone,
        None,
        &[
            "{S} heard that {B} was sick",
            "{S} wanted to visit {B}, who was sick",
            "{S} missed {B}, who was sick and had to stay in bed",
        ],
        &[
            "[{He} made a pot of hot soup|{He} picked some {color} flowers {at}|{He} took {his} {ao} and {food}].",
            "[\"I brought you something,\" said {A}|{He} went to see {B} and sat by the bed|{B} was very happy to see {him}].",
            "[{A} told a funny story, and {B} laughed|They talked and played a quiet game|{A} read a book to {B}].",
            "[The next day, {B} felt much better|\"I feel better now, thank you,\" said {B}|Soon {B} was well and came out to play].",
        ],
        "[A friend is the best medicine|{A} was glad to help|They were happy to be together].",
    ),
    plot(
        "angry",
        Anyone,
        None,
        &[
            "{S} was angry with {B}",
            "{S} was angry because {B} took {his} {ao}",
            "{S} and {B} had a fight {at}",
        ],
        &[
            "[{A} shouted and ran away|\"I do not want to play with you!\" said {A}|{A} went home and did not say a word].",
            "[But playing alone was no fun|Soon {he} missed {B} very much|{His} {parent} said, \"Friends can say sorry.\"]",
            "[So {A} went to {B} and said, \"I am sorry.\"|Then {B} came and said, \"I am sorry.\"|{B} was sad too and brought {food}].",
            "[They hugged and were friends again|\"It is okay,\" said {B}. \"Let us play.\"|They shared {food} and laughed].",
        ],
        "[{A} was not angry anymore|{A} learned that friends can forgive|They played together all day].",
    ),
    plot(
        "tired",
        Anyone,
        Some("dark"),
        &[
            "{S} was very tired",
            "{S} was tired after a long day",
            "{S} did not want to go to bed",
        ],
        &[
            "[But {he} could not sleep|{He} wanted to play with {his} {ao} a little more|{He} lay down and looked at the moon].",
            "[{His} {parent} read {him} a story about a brave [bear|rabbit|lion|mouse]|{His} {parent} sang a soft song|\"Close your eyes,\" said {P}].",
            "[{A} held {his} {o} and listened|Slowly, {his} eyes closed|Outside, the stars were shining].",
            "[Soon {he} was asleep|{He} fell asleep with a smile|\"Good night,\" said {P} and turned off the light].",
        ],
        "[{He} dreamed of a {ao}|{He} dreamed that {he} could fly|In the morning, {A} felt fresh and happy].",
    ),
    plot(
        "a trip",
        Child,
        None,
        &[
            "{S} went to the {place} with {P}",
            "{S} and {P} went to the {place}",
            "{S} was excited because {he} could go to the {place}",
        ],
        &[
            "[They took {food} with them|They saw [a duck|a rabbit|a bird|a frog] {spot}|{A} ran ahead and laughed].",
            "[{A} played {at} all morning|{A} met {B}, and they played together|They sat down {spot} and ate {food}].",
            "[\"Can we stay a little longer?\" asked {A}|\"This is so much fun!\" said {A}|Then it was time to go home, but {A} wanted to stay].",
            "[\"We can come back tomorrow,\" said {P}|On the way home, {A} fell asleep|{His} {parent} smiled and took {his} hand].",
        ],
        HAPPY,
    ),
];

impl Plot {
    /// Whether hero and friend meet for the first time here.
    pub fn meets_stranger(&self) -> bool {
        const STRANGERS: &[&str] = &[
            "finding something",
            "sharing food",
            "hungry",
            "helping a hurt one",
            "making a friend",
            "stuck",
            "lost the way",
            "a wish",
        ];
        STRANGERS.contains(&self.name)
    }

    /// Whether the later steps still make sense without the first.
    pub fn may_skip_first_step(&self) -> bool {
        const NEEDED: &[&str] = &[
            "helping a hurt one",
            "stuck",
            "a trip",
            "telling the truth",
            "building",
            "a snowman",
            "learning to do it",
            "riding a bike",
            "making a friend",
            "angry",
            "helping with work",
            "a secret box",
            "the wind takes it",
            "tired",
            "a race",
            "playing together",
            "a birthday",
            "a wish",
            "a baby bird",
            "at the market",
            "a new pet",
            "painting",
            "hide and seek",
            "the sick friend",
            "cheering up",
        ];
        !NEEDED.contains(&self.name)
    }
}
