//! A Hugging Face folder, inspected. The input is its files, each after a line `=== NAME`. Files with tensors end in zeros
//! that are not stored.

use inpage::runtime::{InspectionOptions, inspect};
use inpage::weights::{ByteSource, BytesSource, ModelFiles};

use crate::padded::Padded;

struct Folder<'f>(Vec<(&'f [u8], &'f [u8])>);

enum FolderFile<'f> {
    Padded(Padded<'f>),
    Whole(BytesSource<&'f [u8]>),
}

impl ByteSource for FolderFile<'_> {
    fn size_bytes(&self) -> u64 {
        match self {
            FolderFile::Padded(file) => file.size_bytes(),
            FolderFile::Whole(file) => file.size_bytes(),
        }
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> inpage::Result<()> {
        match self {
            FolderFile::Padded(file) => file.read_at(offset_bytes, buf).await,
            FolderFile::Whole(file) => file.read_at(offset_bytes, buf).await,
        }
    }
}

impl<'f> Folder<'f> {
    fn of(mut input: &'f [u8]) -> Folder<'f> {
        const MARK: &[u8] = b"=== ";
        let mut files = Vec::new();
        while let Some(rest) = input.strip_prefix(MARK) {
            let name_end = rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len());
            let (name, rest) = rest.split_at(name_end);
            let content = rest.get(1..).unwrap_or_default();
            let next = content
                .windows(MARK.len() + 1)
                .position(|at| at[0] == b'\n' && &at[1..] == MARK);
            let (content, rest) = content.split_at(next.unwrap_or(content.len()));
            files.push((name, content));
            input = rest.get(1..).unwrap_or_default();
        }
        Folder(files)
    }
}

impl<'f> ModelFiles for Folder<'f> {
    type Source = FolderFile<'f>;

    fn gguf_name(&self) -> Option<String> {
        None
    }

    async fn open(&self, name: &str) -> inpage::Result<Option<FolderFile<'f>>> {
        let file = self.0.iter().find(|(file, _)| *file == name.as_bytes());
        Ok(
            file.map(|(_, content)| match name.ends_with(".safetensors") {
                true => FolderFile::Padded(Padded(content)),
                false => FolderFile::Whole(BytesSource(content)),
            }),
        )
    }
}

pub fn run(input: &[u8]) {
    let folder = Folder::of(input);
    let _ = pollster::block_on(inspect(&folder, InspectionOptions::default()));
}
