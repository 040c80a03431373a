//! The command line.

use std::path::Path;

use inpage::api::Switches;
use inpage::model::LoadOptions;
use inpage::runtime::DeviceChoice;

use crate::access::Access;
use crate::adapters::AdapterPath;
use crate::device::{DeviceName, parse_threads};
use crate::load_arguments::set_load_option;

pub const USAGE: &str = "\
usage: serve [--model FILE.gguf|FOLDER] [options]

  --model PATH        the model: a GGUF file, the first of its parts, or a Hugging Face folder; the
                      one in the package if left out
  --projector FILE    the vision tower of a model that takes images: its mmproj file, GGUF
  --draft PATH        a smaller model with the same tokenizer that guesses tokens: a GGUF file or a folder; answers
                      are the same, and come sooner where it guesses well
  --id NAME           what requests may call it besides \"default\"; the file's name if left out
  --port N            8080 if left out; 0 takes any free port
  --device NAME       where to compute: auto if left out, which is a hardware GPU or else the CPU; gpu,
                      cpu, or reference, which is slow and for tests
  --threads N         threads of the CPU device; one per core if left out
  --context N         longest sequence in tokens; the model's own context, at most 4096, if left out
  --kv-format NAME    format of the KV cache, such as q8_0; f16 if left out
  --kv-pool N         tokens of KV cache that all sequences share; 4096 if left out, and never less
                      than the longest sequence
  --quantize NAME     tensor type for the matrices of a folder: q8_0 if left out, none, q4_0, q4_k, ...
  --lora PATH[=SCALE] a low-rank adapter: a GGUF file or a folder of PEFT; may be given several times
  --allow-host NAME   answers requests to this name, besides those of this machine (localhost, 127.0.0.1)
  --allow-origin URL  lets pages of this origin use the server, besides those of this machine; * lets
                      every page on the web that runs in a browser here
  --switches JSON     the endpoint's switches, such as '{\"apiKey\":\"secret\",\"maxN\":4}'
  --help              this text

Defaults are in parentheses. A build with `--features test-hooks` accepts commands at POST /_hooks. It is
for tests only.";

const EMBEDDED_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/www/models/tales.gguf");

pub struct Options {
    pub model: String,
    pub model_id: String,
    pub port: u16,
    pub device: DeviceName,
    pub threads: Option<usize>,
    pub load: LoadOptions,
    pub projector: Option<String>,
    pub draft: Option<String>,
    pub lora: Vec<AdapterPath>,
    pub switches: Switches,
    pub access: Access,
}

impl Options {
    /// `None` if help was requested.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut arguments = arguments;
        let mut model_id = None;
        let mut options = Options {
            model: EMBEDDED_MODEL.to_owned(),
            model_id: String::new(),
            port: 8080,
            device: DeviceName::Of(DeviceChoice::Auto),
            threads: None,
            load: LoadOptions::default(),
            projector: None,
            draft: None,
            lora: Vec::new(),
            switches: Switches::default(),
            access: Access::default(),
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--model" => options.model = value()?,
                "--id" => model_id = Some(value()?),
                "--port" => {
                    let port = value()?;
                    let wrong = |_| format!("--port is a number up to 65535, not {port}");
                    options.port = port.parse().map_err(wrong)?;
                }
                "--device" => options.device = DeviceName::parse(&value()?)?,
                "--threads" => options.threads = Some(parse_threads(&value()?)?),
                "--context" => options.load.context_tokens = Some(tokens(&name, &value()?)?),
                "--kv-pool" => options.load.kv_pool_tokens = Some(tokens(&name, &value()?)?),
                "--kv-format" | "--quantize" => {
                    set_load_option(&mut options.load, &name, &value()?)?;
                }
                "--projector" => options.projector = Some(value()?),
                "--draft" => options.draft = Some(value()?),
                "--lora" => options.lora.push(AdapterPath::parse(&value()?)?),
                "--allow-host" => options.access.allow_host(&value()?),
                "--allow-origin" => options.access.allow_origin(&value()?)?,
                "--switches" => {
                    options.switches = Switches::from_json(&value()?)
                        .map_err(|error| format!("--switches: {error}"))?;
                }
                other => return Err(format!("unknown option {other}")),
            }
        }
        if !Path::new(&options.model).exists() {
            return Err(format!("there is no model {}", options.model));
        }
        let path = Path::new(&options.model);
        // A dot in a folder's name belongs to a version, not to a file extension.
        let stem = match path.is_dir() {
            true => path.file_name(),
            false => path.file_stem(),
        };
        options.model_id = model_id
            .or_else(|| stem.map(|stem| stem.to_string_lossy().into_owned()))
            .filter(|id| !id.is_empty())
            .ok_or("the model needs a name: --id NAME")?;
        Ok(Some(options))
    }
}

fn tokens(name: &str, given: &str) -> Result<usize, String> {
    let tokens = given.parse().ok().filter(|&tokens| tokens > 0);
    tokens.ok_or_else(|| format!("{name} takes a positive number, not {given}"))
}
