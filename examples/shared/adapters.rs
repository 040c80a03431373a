//! The argument `--lora PATH[=SCALE]` of command-line tools.

use inpage::runtime::AdapterFiles;
use inpage::weights::LocalFiles;

/// Path and scale of an adapter.
#[derive(Debug, Clone)]
pub struct AdapterPath {
    pub path: String,
    pub scale: f32,
}

impl AdapterPath {
    /// # Errors
    /// A message that says what is wrong with the scale.
    pub fn parse(given: &str) -> Result<AdapterPath, String> {
        let (path, scale) = given.rsplit_once('=').unwrap_or((given, "1"));
        let number = scale.parse().ok().filter(|scale: &f32| scale.is_finite());
        let scale = number.ok_or(format!("--lora PATH=SCALE takes a number, not {given}"))?;
        let path = path.to_owned();
        Ok(AdapterPath { path, scale })
    }
}

/// The adapters' files for the loader.
///
/// # Errors
/// [`inpage::Error::Read`] if there is no such file.
pub fn adapter_files(paths: &[AdapterPath]) -> inpage::Result<Vec<AdapterFiles<LocalFiles>>> {
    let files = paths.iter().map(|AdapterPath { path, scale }| {
        Ok(AdapterFiles {
            name: path.clone(),
            files: LocalFiles::at(path)?,
            scale: *scale,
        })
    });
    files.collect()
}
