//! The command line.

use std::path::Path;

use inpage::api::Switches;
use inpage::model::LoadOptions;

use crate::access::Access;
use crate::adapters::AdapterPath;
use crate::load_arguments::set_load_option;

pub const USAGE: &str = "\
usage: serve [--model FILE.gguf|FOLDER] [options]

  --model PATH        the model: a GGUF file, the first of its parts, or a Hugging Face folder (the
                      model of the package)
  --id NAME           a name for requests besides \"default\" (the file's name)
  --port N            the port (8080); 0 selects any free port
  --cpu               computes on the CPU: slow, but needs no GPU
  --context N         longest sequence in tokens (the model's own context, at most 4096)
  --kv-format NAME    format of the KV cache: f16, f32 or q8_0 (f16)
  --kv-pool N         tokens of KV cache that all sequences share (4096); never less than the longest
                      sequence
  --quantize NAME     tensor type for the matrices of a folder: none, q8_0, q4_0, q4_k, ... (q8_0)
  --lora PATH[=SCALE] a low-rank adapter: a GGUF file or a folder of PEFT; may be repeated
  --allow-host NAME   also answers requests to this name, not only to this machine (localhost, 127.0.0.1)
  --allow-origin URL  also lets pages of this origin use the server, not only those of this machine; *
                      lets every page in a browser on this machine use it
  --switches JSON     the endpoint's switches, such as '{\"apiKey\":\"secret\",\"maxN\":4}'
  --help              this text

Defaults are in parentheses. A build with `--features test-hooks` accepts commands at POST /_hooks. It is
for tests only.";

const EMBEDDED_MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/www/models/tales.gguf");

pub struct Options {
    pub model: String,
    pub model_id: String,
    pub port: u16,
    pub cpu: bool,
    pub load: LoadOptions,
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
            cpu: false,
            load: LoadOptions::default(),
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
                "--cpu" => options.cpu = true,
                "--context" => options.load.context_tokens = Some(tokens(&name, &value()?)?),
                "--kv-pool" => options.load.kv_pool_tokens = Some(tokens(&name, &value()?)?),
                "--kv-format" | "--quantize" => {
                    set_load_option(&mut options.load, &name, &value()?)?;
                }
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
