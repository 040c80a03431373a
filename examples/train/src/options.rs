//! The command line of the training example.

use std::path::PathBuf;

/// The model to train and the place to write it to. The defaults reproduce the embedded model.
#[derive(Clone, Debug)]
pub struct Options {
    /// The steps at which the learning rate has fallen to zero. The last one ends training.
    pub stages: Vec<usize>,
    pub seed: u64,
    pub vocab: usize,
    pub layers: usize,
    pub ffn: usize,
    /// Windows per step, of `window_tokens` each.
    pub rows: usize,
    pub window_tokens: usize,
    pub learning_rate: f64,
    /// Train on the GPU through wgpu instead of the CPU.
    pub gpu: bool,
    /// Continue from the checkpoint in `work`.
    pub resume: bool,
    /// Do not train: measure and export the checkpoint in `work`.
    pub export_only: bool,
    /// The folder of checkpoints and the loss curve.
    pub work: PathBuf,
    /// The GGUF file to write.
    pub out: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stages: vec![4200, 7600, 9600],
            seed: 1,
            vocab: 1536,
            layers: 3,
            ffn: 512,
            rows: 4,
            window_tokens: 128,
            learning_rate: 2e-3,
            gpu: false,
            resume: false,
            export_only: false,
            work: "target/train".into(),
            out: "www/models/tales.gguf".into(),
        }
    }
}

const USAGE: &str = "options: --stages N,N… --seed N --vocab N --layers N --ffn N --rows N \
    --window N --lr X --device cpu|wgpu --resume --export-only --work DIR --out FILE";

impl Options {
    /// Steps of the whole run.
    pub fn steps(&self) -> usize {
        self.stages.last().copied().unwrap_or(0)
    }

    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// Names the argument that is unknown or has no usable value.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            if name == "--resume" {
                options.resume = true;
                continue;
            }
            if name == "--export-only" {
                options.export_only = true;
                continue;
            }
            let value = arguments
                .next()
                .ok_or_else(|| format!("{name}: no value; {USAGE}"))?;
            let bad = |_| format!("{name}: {value} is not a number");
            match name.as_str() {
                "--stages" => {
                    options.stages = value
                        .split(',')
                        .map(str::parse)
                        .collect::<Result<_, _>>()
                        .map_err(bad)?;
                    if !options.stages.is_sorted_by(|one, next| one < next) {
                        return Err(format!("--stages: {value} is not in rising order"));
                    }
                }
                "--seed" => options.seed = value.parse().map_err(bad)?,
                "--vocab" => options.vocab = value.parse().map_err(bad)?,
                "--layers" => options.layers = value.parse().map_err(bad)?,
                "--ffn" => options.ffn = value.parse().map_err(bad)?,
                "--rows" => options.rows = value.parse().map_err(bad)?,
                "--window" => options.window_tokens = value.parse().map_err(bad)?,
                "--lr" => {
                    options.learning_rate = value
                        .parse()
                        .map_err(|_| format!("--lr: {value} is not a number"))?;
                }
                "--device" => {
                    options.gpu = match value.as_str() {
                        "wgpu" => true,
                        "cpu" => false,
                        other => return Err(format!("--device: {other} is neither cpu nor wgpu")),
                    }
                }
                "--work" => options.work = value.into(),
                "--out" => options.out = value.into(),
                _ => return Err(format!("unknown option {name}; {USAGE}")),
            }
        }
        Ok(options)
    }
}
