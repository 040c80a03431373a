//! The command line.

use std::path::PathBuf;

use inpage::model::LoadOptions;

use crate::load_arguments::set_load_option;

pub const USAGE: &str = "usage: bench [launch|kernels|sweep|model|speculation]... [--model FILE.gguf|FOLDER] \
                         [--draft FILE.gguf|FOLDER] \
                         [--device cpu|gpu] [--kv-format FORMAT] [--quantize TYPE] [--size small|large] \
                         [--tokens N] [--contexts N,N,...] [--batches N,N,...] [--json]";

/// The measurements to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bench {
    Launch,
    Kernels,
    Model,
    /// Runs only if it is named.
    Sweep,
    /// Runs only if it is named.
    Speculation,
}

/// Sizes of matrices. `Small` is for software adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Small,
    Large,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The measurements to make; all if it is empty.
    benches: Vec<Bench>,
    pub model: Option<PathBuf>,
    /// A smaller model that guesses tokens, for `speculation`.
    pub draft: Option<PathBuf>,
    pub gpu: bool,
    /// The options of a load. Its memory sizes depend on what is measured.
    pub load: LoadOptions,
    /// If `None`, depends on the adapter.
    pub size: Option<Size>,
    /// Tokens to decode.
    pub tokens: usize,
    /// Context lengths to decode after. If empty, they depend on the size.
    pub contexts: Vec<usize>,
    /// Sequences to decode together.
    pub batches: Vec<usize>,
    pub json: bool,
}

impl Options {
    /// # Errors
    /// A message that says what is wrong.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            benches: Vec::new(),
            model: None,
            draft: None,
            gpu: true,
            load: LoadOptions::default(),
            size: None,
            tokens: 64,
            contexts: Vec::new(),
            batches: vec![1, 4, 8],
            json: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "launch" => options.benches.push(Bench::Launch),
                "kernels" => options.benches.push(Bench::Kernels),
                "sweep" => options.benches.push(Bench::Sweep),
                "model" => options.benches.push(Bench::Model),
                "speculation" => options.benches.push(Bench::Speculation),
                "--model" => options.model = Some(value()?.into()),
                "--draft" => options.draft = Some(value()?.into()),
                "--device" => {
                    options.gpu = choice(&name, &value()?, [("gpu", true), ("cpu", false)])?
                }
                "--kv-format" | "--quantize" => {
                    set_load_option(&mut options.load, &name, &value()?)?;
                }
                "--size" => {
                    let sizes = [("small", Size::Small), ("large", Size::Large)];
                    options.size = Some(choice(&name, &value()?, sizes)?);
                }
                "--tokens" => {
                    let tokens = value()?.parse().ok().filter(|&tokens| tokens > 0);
                    options.tokens = tokens.ok_or("--tokens takes a positive number")?;
                }
                "--contexts" => options.contexts = numbers(&name, &value()?)?,
                "--batches" => options.batches = numbers(&name, &value()?)?,
                "--json" => options.json = true,
                other => return Err(format!("unknown argument {other}")),
            }
        }
        if !options.gpu && options.benches.contains(&Bench::Launch) {
            return Err("launch measures a GPU's launches; --device cpu has none".into());
        }
        let needs_model = [(Bench::Model, "model"), (Bench::Speculation, "speculation")];
        for (bench, name) in needs_model {
            if options.model.is_none() && options.benches.contains(&bench) {
                return Err(format!("{name} needs --model FILE.gguf"));
            }
        }
        Ok(options)
    }

    pub fn wants(&self, bench: Bench) -> bool {
        if self.benches.is_empty() {
            return match bench {
                Bench::Launch => self.gpu,
                Bench::Kernels | Bench::Model => true,
                Bench::Sweep | Bench::Speculation => false,
            };
        }
        self.benches.contains(&bench)
    }
}

fn numbers(name: &str, given: &str) -> Result<Vec<usize>, String> {
    let numbers = given.split(',').map(|part| {
        let number = part.parse().ok().filter(|&number| number > 0);
        number.ok_or_else(|| format!("{name} takes positive numbers, not {part}"))
    });
    numbers.collect()
}

fn choice<T: Copy, const N: usize>(
    name: &str,
    given: &str,
    choices: [(&str, T); N],
) -> Result<T, String> {
    let found = choices.iter().find(|(choice, _)| *choice == given);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names = choices.map(|(choice, _)| choice);
        format!("{name} is {}, not {given}", names.join(" or "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn all_benches_run_unless_some_are_named() {
        let all = parse("--json").unwrap();
        assert!(
            [Bench::Launch, Bench::Kernels, Bench::Model]
                .iter()
                .all(|b| all.wants(*b))
        );
        let cpu = parse("--device cpu").unwrap();
        assert!(!cpu.wants(Bench::Launch) && cpu.wants(Bench::Kernels));
        let one = parse("launch").unwrap();
        assert!(one.wants(Bench::Launch) && !one.wants(Bench::Kernels));
        let named = parse("speculation --model x").unwrap();
        assert!(named.wants(Bench::Speculation) && !all.wants(Bench::Speculation));
    }

    #[test]
    fn errors_name_the_wrong_argument() {
        for (line, part) in [
            ("--device tpu", "gpu or cpu"),
            ("--kv-format f64", "f16"),
            ("--quantize q9", "q9"),
            ("--tokens 0", "--tokens"),
            ("--contexts 128,0", "--contexts"),
            ("--batches 1,x", "not x"),
            ("--size", "needs a value"),
            ("model", "--model"),
            ("speculation", "--model"),
            ("launch --device cpu", "launch"),
            ("lunch", "lunch"),
        ] {
            assert!(parse(line).unwrap_err().contains(part), "{line}");
        }
    }
}
