//! Adapters in folders, as PEFT (<https://github.com/huggingface/peft>) saves them. Refuses everything but
//! plain LoRA by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::adapter::{Adapter, AdapterFormat, Half, pairs, shown};
use crate::{
    Error, Result,
    weights::{
        JoinedSource, ModelFiles,
        files::read_small,
        safetensors::{self, StoredTensor},
    },
};

const CONFIG: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";
const MAX_CONFIG_BYTES: u64 = 4 << 20;
/// Prefix of all names: PEFT wraps the model.
const WRAPPED: &str = "base_model.model.";

/// Members that change the computation, unless they are absent, null, false or empty.
const REFUSED: [&str; 12] = [
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "layer_replication",
    "lora_bias",
    "modules_to_save",
    "monteclora_config",
    "target_parameters",
    "trainable_token_indices",
    "use_bdlora",
    "use_dora",
    "use_qalora",
];

#[derive(Debug, Deserialize)]
struct Config {
    peft_type: String,
    r: u64,
    lora_alpha: f32,
    use_rslora: Option<bool>,
    /// Ranks of modules that have others.
    rank_pattern: Option<Map<String, Value>>,
    /// Alphas of modules that have others.
    alpha_pattern: Option<BTreeMap<String, f32>>,
    bias: Option<String>,
    init_lora_weights: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Reads the folder's config and the header of its tensors.
pub(super) async fn open<F: ModelFiles>(files: &F) -> Result<Adapter<F::Source>> {
    let missing = |file: &str| Error::InvalidModelFile(format!("the folder has no file {file:?}"));
    let bytes = read_small(files, CONFIG, MAX_CONFIG_BYTES).await?;
    let config = Config::parse(&bytes.ok_or_else(|| missing(CONFIG))?)?;
    let source = files.open(TENSORS).await?;
    let source = source.ok_or_else(|| missing(TENSORS))?;
    let tensors = safetensors::read(TENSORS, &source).await?.into_iter();
    let tensors = tensors
        .map(StoredTensor::into_floats)
        .collect::<Result<_>>()?;
    Ok(Adapter {
        pairs: pairs(TENSORS, tensors, half, |target, rank| {
            config.scale(target, rank)
        })?,
        file: TENSORS.to_owned(),
        format: AdapterFormat::Peft,
        source: JoinedSource::new(vec![source]),
    })
}

/// The checkpoint's tensor that an adapter's tensor is for. Names are
/// `base_model.model.MODULE.lora_A.weight`, optionally with an adapter's name before the last part.
fn half(name: &str) -> Option<(String, Half)> {
    let name = name.strip_prefix(WRAPPED)?;
    let (module, half, rest) = match name.split_once(".lora_A.") {
        Some((module, rest)) => (module, Half::A, rest),
        None => {
            let (module, rest) = name.split_once(".lora_B.")?;
            (module, Half::B, rest)
        }
    };
    let adapter = rest.strip_suffix("weight")?;
    let is_name = |name: &str| !name.is_empty() && !name.contains('.');
    let is_plain = adapter.is_empty() || adapter.strip_suffix('.').is_some_and(is_name);
    is_plain.then(|| (format!("{module}.weight"), half))
}

impl Config {
    fn parse(bytes: &[u8]) -> Result<Config> {
        let config: Config = serde_json::from_slice(bytes)
            .map_err(|error| Error::InvalidModelFile(format!("{CONFIG}: {error}")))?;
        let unsupported = |what: String| Err(Error::UnsupportedModel(format!("{CONFIG}: {what}")));
        if config.peft_type != "LORA" {
            return unsupported(format!("peft_type {}", shown(&config.peft_type)));
        }
        if let Some(bias) = config.bias.as_deref().filter(|bias| *bias != "none") {
            return unsupported(format!("bias {}", shown(bias)));
        }
        // Other values change the weights that the adapter is for.
        let keeps_weights = match &config.init_lora_weights {
            None | Some(Value::Null | Value::Bool(_)) => true,
            Some(Value::String(how)) => ["gaussian", "eva", "orthogonal"].contains(&&**how),
            Some(_) => false,
        };
        if !keeps_weights {
            return unsupported("init_lora_weights that changes the model's weights".into());
        }
        let says_anything = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            _ => true,
        };
        let is_set = |key: &&&str| config.rest.get(**key).is_some_and(says_anything);
        match REFUSED.iter().find(is_set) {
            Some(key) => unsupported(format!("an adapter with {key}")),
            None => Ok(config),
        }
    }

    /// Factor of the product for the tensor `target`.
    fn scale(&self, target: &str, rank: u64) -> Result<f32> {
        let has_ranks = self.rank_pattern.as_ref().is_some_and(|it| !it.is_empty());
        if rank != self.r && !has_ranks {
            return Err(Error::InvalidModelFile(format!(
                "{TENSORS}: the rank for {} is {rank}, not the {} of {CONFIG}",
                shown(target),
                self.r
            )));
        }
        let alpha = self.alpha(target)?;
        Ok(match self.use_rslora {
            Some(true) => alpha / (rank as f32).sqrt(),
            _ => alpha / rank as f32,
        })
    }

    /// The alpha of a module. Keys of `alpha_pattern` are suffixes of module names; PEFT allows regular
    /// expressions too, which are refused.
    fn alpha(&self, target: &str) -> Result<f32> {
        let module = target.strip_suffix(".weight").unwrap_or(target);
        let mut found = None;
        for (key, alpha) in self.alpha_pattern.iter().flatten() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if !key.chars().all(is_plain) {
                return Err(Error::UnsupportedModel(format!(
                    "{CONFIG}: a pattern {} in alpha_pattern",
                    shown(key)
                )));
            }
            let before = module.strip_suffix(&**key);
            if !before.is_some_and(|before| before.is_empty() || before.ends_with('.')) {
                continue;
            }
            if found.replace(*alpha).is_some_and(|other| other != *alpha) {
                return Err(Error::UnsupportedModel(format!(
                    "{CONFIG}: several keys of alpha_pattern for {}",
                    shown(module)
                )));
            }
        }
        Ok(found.unwrap_or(self.lora_alpha))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(members: &str) -> Result<Config> {
        let text = format!(r#"{{"peft_type":"LORA","r":4,"lora_alpha":6{members}}}"#);
        Config::parse(text.as_bytes())
    }

    #[test]
    fn names_are_taken_apart() {
        let q = "model.layers.0.self_attn.q_proj";
        for (name, wanted) in [
            (format!("{WRAPPED}{q}.lora_A.weight"), Some(Half::A)),
            (format!("{WRAPPED}{q}.lora_B.default.weight"), Some(Half::B)),
            (format!("{WRAPPED}{q}.lora_B.a.b.weight"), None),
            (format!("{WRAPPED}{q}.lora_B..weight"), None),
            (format!("{WRAPPED}{q}.lora_B.bias"), None),
            (format!("{WRAPPED}{q}.lora_embedding_A"), None),
            (format!("{q}.lora_A.weight"), None),
        ] {
            let wanted = wanted.map(|half| (format!("{q}.weight"), half));
            assert_eq!(half(&name), wanted, "{name}");
        }
    }

    #[test]
    fn scales_follow_alpha_and_rank() {
        let q = "model.layers.1.self_attn.q_proj.weight";
        let patterns = r#","rank_pattern":{"x":2},"alpha_pattern":{"q_proj":2,"1.mlp":5}"#;
        for (members, rank, wanted) in [
            ("", 4, 1.5),
            (r#","use_rslora":true"#, 4, 3.0),
            (patterns, 2, 1.0),
            (r#","alpha_pattern":{"v_proj":2,"proj":1}"#, 4, 1.5),
            (
                r#","init_lora_weights":"gaussian","bias":"none","loftq_config":{}"#,
                4,
                1.5,
            ),
        ] {
            assert_eq!(
                config(members).unwrap().scale(q, rank).unwrap(),
                wanted,
                "{members}"
            );
        }
    }

    #[test]
    fn what_is_not_plain_lora_is_refused_by_name() {
        for (members, part) in [
            (r#","use_dora":true"#, "use_dora"),
            (r#","modules_to_save":["lm_head"]"#, "modules_to_save"),
            (r#","layer_replication":[[0,2]]"#, "layer_replication"),
            (r#","bias":"all""#, "all"),
            (r#","init_lora_weights":"pissa""#, "init_lora_weights"),
        ] {
            let error = config(members).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(CONFIG), "{error}");
        }
        for (members, part) in [
            (r#","alpha_pattern":{".*q_proj":2}"#, ".*q_proj"),
            (
                r#","alpha_pattern":{"q_proj":2,"self_attn.q_proj":3}"#,
                "several",
            ),
        ] {
            let scale = config(members)
                .unwrap()
                .scale("model.self_attn.q_proj.weight", 4);
            let error = scale.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let rank = config("").unwrap().scale("q_proj.weight", 8);
        assert!(rank.unwrap_err().to_string().contains("rank"));
        let other = Config::parse(br#"{"peft_type":"IA3","r":4,"lora_alpha":6}"#);
        assert!(other.unwrap_err().to_string().contains("IA3"));
    }
}
