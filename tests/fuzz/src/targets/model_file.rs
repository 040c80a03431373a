//! A GGUF file, of a model or of a projector: header, metadata, plan, tokenizer and report, as `inspectModel` reads them.

use inpage::runtime::{InspectionOptions, inspect};
use inpage::weights::ModelFiles;

use crate::padded::Padded;

/// A folder with one GGUF file.
struct OneFile<'f>(&'f [u8]);

impl<'f> ModelFiles for OneFile<'f> {
    type Source = Padded<'f>;

    fn gguf_name(&self) -> Option<String> {
        Some("model.gguf".to_owned())
    }

    async fn open(&self, name: &str) -> inpage::Result<Option<Padded<'f>>> {
        Ok((name == "model.gguf").then_some(Padded(self.0)))
    }
}

pub fn run(input: &[u8]) {
    // Files that are no model are reported in the inspection.
    let report = pollster::block_on(inspect(&OneFile(input), InspectionOptions::default()));
    let report = report.map(|report| serde_json::to_string(&report));
    if let Ok(text) = report {
        text.expect("every report is JSON");
    }
}
