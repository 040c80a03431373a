//! The device under measurement, and the lines that report measurements.

use inpage::{
    device::{ComputeDevice, CpuOptions, Gpu, GpuOptions},
    ops::Variant,
    tensor_types::TensorType,
    tuner::{Needs, Precision, best_variant},
};
use serde_json::{Map, Value, json};

use crate::{
    Outcome,
    options::{Options, Size},
    raw::RawGpu,
    timing::{ROUNDS, median, seconds},
};

/// Upper bounds on this machine, measured in the same run.
#[derive(Debug, Clone, Copy)]
pub struct Yardsticks {
    /// Bytes that a plain copy reads and writes.
    pub bytes_per_s: f64,
    /// Floating point operations of a kernel; `None` on the CPU.
    pub flop_per_s: Option<f64>,
}

/// The device under measurement and how to print.
pub struct Machine {
    pub device: ComputeDevice,
    /// The variant for benchmarks of kernels. Loading a model chooses its own.
    pub variant: Variant,
    pub size: Size,
    facts: Map<String, Value>,
    json: bool,
}

impl Machine {
    pub async fn find(options: &Options) -> Outcome<Machine> {
        let device = match options.gpu {
            true => ComputeDevice::gpu(GpuOptions::default()).await?,
            false => ComputeDevice::cpu(CpuOptions::default()),
        };
        let needs = Needs {
            types: TensorType::ALL,
            experts: false,
            whole_attention: false,
            kv_format: options.load.kv_format,
            precision: Precision::Auto,
        };
        let variant = best_variant(&device, needs).await?;
        let size = options
            .size
            .unwrap_or(match device.report().software_adapter {
                true => Size::Small,
                false => Size::Large,
            });
        let facts = facts(&device, variant);
        Ok(Machine {
            device,
            variant,
            size,
            facts,
            json: options.json,
        })
    }

    /// The GPU, if it is the device under measurement.
    pub fn gpu(&self) -> Option<&Gpu> {
        self.device.recorder()
    }

    /// Prints the facts of the machine once. Every JSON line repeats them.
    pub fn introduce(&self) {
        if cfg!(debug_assertions) {
            eprintln!("not a release build: CPU times are too high");
        }
        if !self.json {
            println!("machine  {}", pairs(&self.facts));
        }
    }

    /// Prints one measurement; `values` is an object.
    pub fn print(&self, bench: &str, name: &str, values: Value) {
        let Value::Object(values) = values else {
            unreachable!("measurements are objects");
        };
        if self.json {
            let mut line = Map::new();
            line.insert("bench".into(), bench.into());
            line.insert("name".into(), name.into());
            line.extend(values);
            line.extend(self.facts.clone());
            println!("{}", Value::Object(line));
        } else {
            println!("{:<8} {name:<22} {}", bench, pairs(&values));
        }
    }

    /// Measures the upper bounds. Bytes: the faster one of the device's copy command and a copy kernel.
    /// Operations: products and sums in registers.
    pub async fn yardsticks(&self) -> Outcome<Yardsticks> {
        let mebibytes = if self.size == Size::Large { 256 } else { 32 };
        let bytes = mebibytes << 20;
        if self.gpu().is_none() {
            let (from, mut to) = (vec![1u8; bytes], vec![0u8; bytes]);
            let times = (0..ROUNDS).map(|_| {
                let start = std::time::Instant::now();
                to.copy_from_slice(std::hint::black_box(&from));
                std::hint::black_box(&mut to);
                seconds(start)
            });
            let rate = 2.0 * bytes as f64 / median(times.collect());
            self.print("copy", "memory", json!({ "gb_per_s": round(rate / 1e9) }));
            return Ok(Yardsticks {
                bytes_per_s: rate,
                flop_per_s: None,
            });
        }
        let raw = RawGpu::request().await?;
        let (command, kernel) = raw.copy_bandwidths(bytes)?;
        let gb = |rate: f64| json!({ "gb_per_s": round(rate / 1e9) });
        self.print("copy", "buffer_to_buffer", gb(command));
        self.print("copy", "kernel", gb(kernel));
        let workgroups = if self.size == Size::Large { 8192 } else { 64 };
        let flop_per_s = raw.fma_peak(workgroups)?;
        let gflop = json!({ "gflop_per_s": round(flop_per_s / 1e9) });
        self.print("fma", "kernel", gflop);
        Ok(Yardsticks {
            bytes_per_s: command.max(kernel),
            flop_per_s: Some(flop_per_s),
        })
    }
}

fn facts(device: &ComputeDevice, variant: Variant) -> Map<String, Value> {
    let report = device.report();
    let facts = json!({
        "device": report.device,
        "threads": report.threads,
        "adapter": &report.adapter,
        "backend": &report.backend,
        "software_adapter": report.software_adapter,
        "variant": variant.name(),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "version": env!("CARGO_PKG_VERSION"),
        "release": !cfg!(debug_assertions),
    });
    let Value::Object(facts) = facts else {
        unreachable!("written as an object");
    };
    facts
}

fn pairs(values: &Map<String, Value>) -> String {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), String::from)
    };
    let shown = values.iter().filter(|(_, value)| !value.is_null());
    let pairs: Vec<String> = shown
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    pairs.join("  ")
}

/// Rounds to three decimal places.
pub fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
