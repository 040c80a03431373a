//! GBNF: the translated grammar accepts the strings that the original describes, and what cannot be translated is refused.

use super::*;

fn gbnf(text: &str) -> GrammarSource {
    GrammarSource::Gbnf(text.to_owned())
}

/// Checks which strings the grammar accepts.
#[track_caller]
fn check(grammar: &str, accepted: &[&str], refused: &[&str]) {
    let model = Model::made();
    let compiled = model.grammar(&gbnf(grammar));
    for text in accepted {
        assert!(
            model.accepts(&compiled, text),
            "{grammar}: {text:?} is refused"
        );
    }
    for text in refused {
        assert!(
            !model.accepts(&compiled, text),
            "{grammar}: {text:?} is accepted"
        );
    }
}

#[test]
fn literals_alternatives_and_rules() {
    check(
        r#"root ::= "yes" | "no""#,
        &["yes", "no"],
        &["", "yesno", "ye"],
    );
    check(
        "# greetings\nroot ::= greeting \", \" name # end\n\ngreeting ::= \"Hi\" | \"Hello\"\nname ::=\n  \"Ada\" |\n  \"Bob\"\n",
        &["Hi, Ada", "Hello, Bob"],
        &["Hi", "Hi, Eve", "Hi,Ada"],
    );
    check(
        r#"root ::= ("a" | "b") ("c"
        | "d")"#,
        &["ac", "bd"],
        &["ab", "a", "acd"],
    );
    check(r#"root ::= "a" | "#, &["", "a"], &["b"]);
    check(r#"root ::= """#, &[""], &["a"]);
    // Longer literals do not hide shorter ones.
    check(
        r#"root ::= "a" "b" | "ab" "c""#,
        &["ab", "abc"],
        &["a", "abcc"],
    );
    check(
        r#"root ::= [a-z]* "b""#,
        &["b", "ab", "abb", "bbb"],
        &["", "a", "ba"],
    );
}

#[test]
fn repetitions() {
    check(
        r#"root ::= "a"* "b"+ "c"?"#,
        &["b", "aabbc"],
        &["", "aa", "bcc"],
    );
    check(r#"root ::= "ab"{2}"#, &["abab"], &["ab", "ababab", "abb"]);
    check(r#"root ::= [0-9]{1,3}"#, &["1", "12", "123"], &["", "1234"]);
    check(r#"root ::= "a"{2,} "b""#, &["aab", "aaaaab"], &["ab", "aa"]);
    check(
        r#"root ::= ("a" "b"?){0,2}"#,
        &["", "a", "ab", "aba", "abab"],
        &["aaa", "b"],
    );
    check(
        r#"root ::= item{ 1 , 2 }
item ::= "x""#,
        &["x", "xx"],
        &["", "xxx"],
    );
}

#[test]
fn classes_and_escapes() {
    check(
        r#"root ::= [a-cx\-\]]"#,
        &["a", "c", "x", "-", "]"],
        &["d", "\\", ""],
    );
    check(
        r#"root ::= [^a-z\n]+"#,
        &["A1", "é日", "/"],
        &["a", "\n", ""],
    );
    check(
        r#"root ::= "\"\\\n\t\x41\u00e9\U0001F600""#,
        &["\"\\\n\tAé😀"],
        &["A"],
    );
    check(r#"root ::= . "x""#, &["ax", "\nx", "日x"], &["x", "aax"]);
    check(r#"root ::= [a-]"#, &["a", "-"], &["b"]);
    check(
        r#"root ::= "a/b.*[(" [/.]"#,
        &["a/b.*[(/", "a/b.*[(."],
        &["aab.*[(/"],
    );
    check(r#"root ::= [é-ü]"#, &["é", "ü"], &["e", "z"]);
}

#[test]
fn recursion() {
    check(
        r#"
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4})
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"#,
        &[
            "{}",
            r#"{"a": 1}"#,
            r#"{"a":[1,-2.5e3,"x\n\u00e9",{"b":{}}],"c":null}"#,
            "{ \"a\":\n  true}",
        ],
        &["", "[]", r#"{"a"}"#, r#"{"a": 1,}"#, r#"{"a": 01}"#, "{  }"],
    );
    check(
        r#"root ::= sum
sum ::= term ("+" term)*
term ::= [0-9]+ | "(" sum ")""#,
        &["1", "12+3", "(1+(2))+4"],
        &["", "1+", "(1", "1+)"],
    );
    // A recursive rule that ends with itself.
    check(r#"root ::= "a" root | "b""#, &["b", "aab"], &["a", "ba"]);
}

#[test]
fn what_cannot_be_translated_is_refused() {
    let model = Model::made();
    for (grammar, word) in [
        ("", "root"),
        ("start ::= \"a\"", "root"),
        ("root ::= other", "\"other\" is not defined"),
        ("root ::= root \"a\" | \"b\"", "left recursion"),
        (
            "root ::= a \"x\"\na ::= b?  c\nb ::= \"b\"\nc ::= root | \"c\"",
            "left recursion",
        ),
        ("root ::= ws root | \"b\"\nws ::= \" \"*", "left recursion"),
        ("root ::= \"a", "without an end"),
        ("root ::= [a-", "without an end"),
        ("root ::= [z-a]", "reversed"),
        ("root ::= []", "empty class"),
        ("root ::= \"\\q\"", "unknown escape"),
        ("root ::= \"\\xg1\"", "hexadecimal"),
        ("root ::= \"\\ud800\"", "hexadecimal"),
        ("root ::= (\"a\"", "expected )"),
        ("root ::= \"a\")", "unexpected"),
        ("root = \"a\"", "::="),
        ("root ::= \"a\"\nroot ::= \"b\"", "twice"),
        ("root ::= \"a\"{3,2}", "below"),
        ("root ::= \"a\"{,2}", "number of repetitions"),
        ("root ::= \"a\"{3000}", "number of repetitions"),
        ("root ::= <think> \"a\"", "tokens"),
        ("root ::= !<[12]>", "tokens"),
    ] {
        let message = model.refusal(&gbnf(grammar));
        assert!(message.contains(word), "{grammar:?}: {message}");
    }
    // The deepest that is allowed compiles.
    let depth = 15;
    let nested = format!(
        "root ::= {}\"b\"{}",
        "(\"a\" ".repeat(depth),
        ")?".repeat(depth)
    );
    let grammar = model.grammar(&gbnf(&nested));
    assert!(model.accepts(&grammar, "") && model.accepts(&grammar, &("a".repeat(15) + "b")));
    assert!(!model.accepts(&grammar, "b") && model.accepts(&grammar, "a"));
    let deep = format!("root ::= {}\"a\"{}", "(".repeat(100), ")".repeat(100));
    assert!(model.refusal(&gbnf(&deep)).contains("deeper"));
    let long = format!("root ::= {}", "[a] ".repeat(9000));
    assert!(model.refusal(&gbnf(&long)).contains("elements"));
    let repeated = format!("root ::= \"a\"{}", "?".repeat(1000));
    assert!(model.refusal(&gbnf(&repeated)).contains("repetitions"));
}

#[test]
fn choices_are_taken_literally() {
    let model = Model::made();
    let choices = ["a.c", "x|y", "(", "a/b\\", "tab\t\n", "日本 é", "^$"];
    let source = GrammarSource::Regex(choice_regex(&choices));
    let grammar = model.grammar(&source);
    for choice in choices {
        assert!(model.accepts(&grammar, choice), "{choice:?}");
    }
    for other in ["abc", "x", "y", "", "a/b"] {
        assert!(!model.accepts(&grammar, other), "{other:?}");
    }
}

#[test]
fn white_space_of_json_is_chosen() {
    let model = Model::made();
    let spaced = |whitespace| GrammarSource::SpacedJsonSchema {
        schema: serde_json::json!({"type": "array", "items": {"type": "boolean"}}),
        whitespace,
    };
    let none = model.grammar(&spaced(Whitespace::None));
    assert!(model.accepts(&none, "[true,false]") && !model.accepts(&none, "[true, false]"));
    let two = model.grammar(&spaced(Whitespace::Pattern("  ".to_owned())));
    assert!(model.accepts(&two, "[true,  false]") && !model.accepts(&two, "[true, false]"));
    let message = model.refusal(&spaced(Whitespace::Pattern("(".to_owned())));
    assert!(message.contains("unclosed"), "{message}");
}

#[test]
fn rules_of_ebnf_end_where_the_next_begins() {
    let model = Model::made();
    let text = "root ::= \"a\"\n  item\n  | 'x'\n";
    assert!(
        model
            .compiler
            .compile(&GrammarSource::Ebnf(text.into()), Objects::Closed)
            .is_err()
    );
    let text = "root ::= \"a\"\n  item # the rest\n  | (\"x\"\n \"y\") ::\n";
    assert!(
        model
            .compiler
            .compile(&GrammarSource::Ebnf(text.into()), Objects::Closed)
            .is_err()
    );
    let text =
        "root ::= \"a\"\n  item # the rest\n  | \"x\"\n*\nitem ::= [b\\'] other other ::=\n\"\\?\"";
    let grammar = model.grammar(&GrammarSource::Ebnf(text.into()));
    for accepted in ["ab?", "a'?", "", "xx"] {
        assert!(model.accepts(&grammar, accepted), "{accepted}");
    }
    for refused in ["a", "ab", "xa"] {
        assert!(!model.accepts(&grammar, refused), "{refused}");
    }
    // In GBNF a line ends the rule.
    let text = GrammarSource::Gbnf("root ::= \"a\"\n\"b\"".into());
    assert!(model.compiler.compile(&text, Objects::Closed).is_err());
}
