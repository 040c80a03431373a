//! GGUF files that llama.cpp's `gguf-split` has split: the first part has all metadata, each part its own
//! tensors. Reads headers only.

use super::contents::Gguf;
use crate::{
    Error, Result,
    weights::{
        files::ModelFiles,
        quoted::quoted,
        source::{ByteSource, JoinedSource},
    },
};

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";
const ARCHITECTURE: &str = "general.architecture";

/// The parsed name of a part: `STEM-00002-of-00003.gguf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartName<'n> {
    stem: &'n str,
    /// Starts at 1.
    number: usize,
    count: usize,
}

impl<'n> PartName<'n> {
    /// `None` for the name of a file that is not a part.
    pub fn parse(name: &'n str) -> Option<PartName<'n>> {
        let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let five_digits = |digits: &str| match digits.len() {
            5 if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        };
        let (number, count) = (five_digits(number)?, five_digits(count)?);
        (1..=count).contains(&number).then_some(PartName {
            stem,
            number,
            count,
        })
    }

    /// The name of another part.
    fn of_number(&self, number: usize) -> String {
        format!("{}-{number:05}-of-{:05}.gguf", self.stem, self.count)
    }
}

/// Reads the headers of a GGUF file or of all its parts. The offsets of the tensors are offsets in the
/// returned source.
///
/// # Errors
/// Errors of [`Gguf::read`]; [`Error::InvalidModelFile`] naming a part that is missing or belongs to another
/// model.
pub async fn read<F: ModelFiles>(files: &F, name: &str) -> Result<(Gguf, JoinedSource<F::Source>)> {
    let parts = PartName::parse(name);
    if let Some(part) = parts.filter(|part| part.number != 1) {
        return Err(Error::InvalidModelFile(format!(
            "{} is part {} of {}; name the first one, {}",
            quoted(name),
            part.number,
            part.count,
            quoted(&part.of_number(1))
        )));
    }
    let source = files.open(name).await?;
    let source = source.ok_or_else(|| Error::Read(format!("there is no file {}", quoted(name))))?;
    let first = match parts {
        Some(_) => read_part(&source, name).await?,
        None => Gguf::read(&source).await?,
    };
    let said = first.metadata.usize(COUNT)?.unwrap_or(1);
    let count = parts.map_or(1, |part| part.count);
    // A file with such a name but without a count of parts is complete.
    let whole = said <= 1 && (count == 1 || first.metadata.get(COUNT).is_none());
    if whole {
        return Ok((first, JoinedSource::new(vec![source])));
    }
    let Some(parts) = parts.filter(|_| said == count) else {
        return Err(Error::InvalidModelFile(format!(
            "{} says that it is one of {said} parts; its name does not",
            quoted(name)
        )));
    };
    let (headers, sources) = read_all(files, parts, first, source).await?;
    for (index, header) in headers.iter().enumerate() {
        check_part(header, index, &headers[0]).map_err(|what| {
            let name = parts.of_number(index + 1);
            Error::InvalidModelFile(format!("{} {what}", quoted(&name)))
        })?;
    }
    join(headers, JoinedSource::new(sources))
}

/// Reads the headers of all parts after the first one.
async fn read_all<F: ModelFiles>(
    files: &F,
    parts: PartName<'_>,
    first: Gguf,
    source: F::Source,
) -> Result<(Vec<Gguf>, Vec<F::Source>)> {
    let count = parts.count;
    let (mut headers, mut sources) = (vec![first], vec![source]);
    for number in 2..=count {
        let name = parts.of_number(number);
        let source = files.open(&name).await?.ok_or_else(|| {
            Error::InvalidModelFile(format!(
                "part {number} of {count} is missing: {}",
                quoted(&name)
            ))
        })?;
        headers.push(read_part(&source, &name).await?);
        sources.push(source);
    }
    Ok((headers, sources))
}

/// Reads the header of one of several files; errors name the file.
async fn read_part<S: ByteSource>(source: &S, name: &str) -> Result<Gguf> {
    let of_part = |what: String| format!("{}: {what}", quoted(name));
    Gguf::read(source).await.map_err(|error| match error {
        Error::InvalidModelFile(what) => Error::InvalidModelFile(of_part(what)),
        Error::UnsupportedModel(what) => Error::UnsupportedModel(of_part(what)),
        error => error,
    })
}

/// Checks that a part belongs to the first one. The error says why not.
fn check_part(part: &Gguf, index: usize, first: &Gguf) -> Result<(), String> {
    let number = |of: &Gguf, key: &str| of.metadata.usize(key).ok().flatten();
    if number(part, NUMBER) != Some(index) {
        let said = number(part, NUMBER).map_or("nothing".into(), |number| number.to_string());
        return Err(format!("says {said} under {NUMBER}, not {index}"));
    }
    for key in [COUNT, TENSORS] {
        if number(part, key) != number(first, key) {
            return Err(format!("belongs to another model: its {key} differs"));
        }
    }
    let architecture = |of: &Gguf| of.metadata.get(ARCHITECTURE).cloned();
    match architecture(part) {
        Some(said) if Some(&said) != architecture(first).as_ref() => Err(format!(
            "belongs to another model: its {ARCHITECTURE} differs"
        )),
        _ => Ok(()),
    }
}

fn join<S: ByteSource>(
    headers: Vec<Gguf>,
    source: JoinedSource<S>,
) -> Result<(Gguf, JoinedSource<S>)> {
    let (mut metadata, mut tensors) = (None, Vec::new());
    for (part, header) in headers.into_iter().enumerate() {
        metadata.get_or_insert(header.metadata);
        for mut tensor in header.tensors {
            tensor.offset_bytes += source.start_bytes(part);
            tensors.push(tensor);
        }
    }
    let metadata = metadata.unwrap_or_default();
    let said = metadata.usize(TENSORS)?;
    if said.is_some_and(|said| said != tensors.len()) {
        return Err(Error::InvalidModelFile(format!(
            "the parts have {} tensors; {TENSORS} states a different number",
            tensors.len()
        )));
    }
    Ok((Gguf::new(metadata, tensors)?, source))
}

#[cfg(test)]
mod tests;
