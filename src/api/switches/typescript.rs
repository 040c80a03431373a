//! Profiles and switches for TypeScript and `docs/api.md`.

use serde_json::Value;

use super::profiles::PROFILES;
use super::values::Switches;
use crate::typescript::Constant;

/// The TypeScript type of what [`Switches::from_json`] reads.
pub(in crate::api) struct EngineSwitches;

impl ts_rs::TS for EngineSwitches {
    type WithoutGenerics = EngineSwitches;
    type OptionInnerType = EngineSwitches;

    fn docs() -> Option<String> {
        let docs = "/** Switches of an engine. A `profile` sets several; single switches override it. */\n";
        Some(docs.to_owned())
    }

    fn name(_: &ts_rs::Config) -> String {
        "EngineSwitches".to_owned()
    }

    fn inline(_: &ts_rs::Config) -> String {
        let names = PROFILES.iter().flat_map(|profile| profile.names);
        let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        format!("Partial<Switches> & {{ profile?: {} }}", names.join(" | "))
    }

    fn decl(config: &ts_rs::Config) -> String {
        format!("type EngineSwitches = {};", Self::inline(config))
    }

    fn visit_dependencies(visitor: &mut impl ts_rs::TypeVisitor) {
        visitor.visit::<Switches>();
    }

    fn output_path() -> Option<std::path::PathBuf> {
        Some("types.ts".into())
    }
}

/// The values of `profile`, in words.
pub(super) fn profile_words() -> String {
    let words = PROFILES.iter().map(|profile| {
        let names = profile.names.iter().map(|name| format!("`\"{name}\"`"));
        names.collect::<Vec<_>>().join(" or ")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The switches, and what the page knows of each profile before there is an engine.
pub(in crate::api) fn constants() -> [Constant; 2] {
    let profiles = PROFILES.iter().flat_map(|profile| {
        let known = serde_json::json!({
            "basePaths": profile.base_paths,
            "allowMissingModel": profile.allow_missing_model,
        });
        profile
            .names
            .iter()
            .map(move |name| ((*name).to_owned(), known.clone()))
    });
    let profiles = Constant {
        docs: "The settings of the profiles that the page reads itself.",
        name: "PROFILES",
        declared_type: "Readonly<Record<NonNullable<EngineSwitches[\"profile\"]>, Readonly<Pick<Switches, \"basePaths\" | \"allowMissingModel\">>>>",
        value: Value::Object(profiles.collect()),
    };
    let switches = Constant::names::<Switches>(
        "The names of the switches.",
        "SWITCHES",
        "Readonly<Record<keyof EngineSwitches, true>>",
        &["profile"],
    );
    [switches, profiles]
}
