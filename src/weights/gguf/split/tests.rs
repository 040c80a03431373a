//! Split GGUF files: names of parts, parts that form one model, and errors that name a part.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use pollster::block_on;

use super::*;
use crate::{
    tensor_types::TensorType,
    weights::{BytesSource, GgufWriter, Metadata},
};

type Joined = JoinedSource<BytesSource<Rc<[u8]>>>;

/// Files in memory, and the names of those that were opened.
struct Files {
    name: String,
    files: HashMap<String, Rc<[u8]>>,
    opened: RefCell<Vec<String>>,
}

impl Files {
    fn new(files: Vec<(&str, Vec<u8>)>) -> Files {
        let name = files[0].0.to_owned();
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), bytes.into()));
        Files {
            name,
            files: files.collect(),
            opened: RefCell::default(),
        }
    }

    fn read(&self) -> Result<(Gguf, Joined)> {
        block_on(read(self, &self.name))
    }

    #[track_caller]
    fn is_refused(&self, parts: &[&str]) {
        let error = self.read().map(|_| ()).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error:?} does not say {part:?}");
        }
    }
}

impl ModelFiles for Files {
    type Source = BytesSource<Rc<[u8]>>;

    fn gguf_name(&self) -> Option<String> {
        Some(self.name.clone())
    }

    async fn open(&self, name: &str) -> Result<Option<Self::Source>> {
        self.opened.borrow_mut().push(name.to_owned());
        Ok(self.files.get(name).cloned().map(BytesSource))
    }
}

/// A file with these keys and, under each name, one F32 of this value.
fn file(keys: &[(&str, u16)], architecture: Option<&str>, tensors: &[(&str, f32)]) -> Vec<u8> {
    let mut metadata = Metadata::new();
    for (key, value) in keys {
        metadata.insert(*key, *value);
    }
    if let Some(architecture) = architecture {
        metadata.insert(ARCHITECTURE, architecture);
    }
    let mut writer = GgufWriter::new(metadata).unwrap();
    for (name, _) in tensors {
        writer.tensor(*name, &[1], TensorType::F32).unwrap();
    }
    let mut data = writer.start(Vec::new()).unwrap();
    for (_, value) in tensors {
        data.write(&value.to_le_bytes()).unwrap();
    }
    data.finish().unwrap()
}

fn part(number: u16, count: u16, tensors: &[(&str, f32)]) -> Vec<u8> {
    let keys = [(NUMBER, number), (COUNT, count), (TENSORS, 3)];
    file(&keys, (number == 0).then_some("llama"), tensors)
}

const FIRST: &str = "m-00001-of-00002.gguf";
const SECOND: &str = "m-00002-of-00002.gguf";

fn first() -> (&'static str, Vec<u8>) {
    (FIRST, part(0, 2, &[("a", 1.0), ("b", 2.0)]))
}

#[test]
fn names_of_parts() {
    let part = PartName::parse("a-b-00002-of-00010.gguf").unwrap();
    assert_eq!((part.number, part.count), (2, 10));
    assert_eq!(part.of_number(10), "a-b-00010-of-00010.gguf");
    for name in [
        "a.gguf",
        "a-00000-of-00002.gguf",
        "a-00003-of-00002.gguf",
        "a-1-of-2.gguf",
        "a-00001-of-+0002.gguf",
        "a-00001-of-00002.bin",
        "00001-of-00002.gguf",
    ] {
        assert_eq!(PartName::parse(name), None, "{name}");
    }
}

#[test]
fn parts_are_one_model() {
    let files = Files::new(vec![first(), (SECOND, part(1, 2, &[("c", 3.0)]))]);
    let (gguf, source) = files.read().unwrap();
    assert_eq!(gguf.metadata.str(ARCHITECTURE), Ok(Some("llama")));
    for (name, value) in [("a", 1.0f32), ("b", 2.0), ("c", 3.0)] {
        let mut bytes = [0; 4];
        block_on(source.read_at(gguf.tensor(name).unwrap().offset_bytes, &mut bytes)).unwrap();
        assert_eq!(f32::from_le_bytes(bytes), value);
    }
    assert_eq!(*files.opened.borrow(), [FIRST, SECOND]);
}

#[test]
fn a_whole_file_may_have_any_name() {
    for name in ["m.gguf", FIRST, "m-00001-of-00001.gguf"] {
        let files = Files::new(vec![(name, file(&[], Some("llama"), &[("a", 1.0)]))]);
        assert_eq!(files.read().unwrap().0.tensors.len(), 1, "{name}");
    }
}

#[test]
fn missing_and_foreign_parts_are_named() {
    Files::new(vec![first()]).is_refused(&["part 2 of 2 is missing", SECOND]);
    Files::new(vec![(SECOND, part(1, 2, &[]))]).is_refused(&["part 2 of 2", FIRST]);
    Files::new(vec![("renamed.gguf", first().1)]).is_refused(&["renamed.gguf", "2 parts"]);
    let second = |bytes| Files::new(vec![first(), (SECOND, bytes)]);
    second(b"<!doctype html>".to_vec()).is_refused(&[SECOND, "not \"GGUF\""]);
    let c = [("c", 3.0)];
    second(part(0, 2, &c)).is_refused(&[SECOND, "says 0 under split.no, not 1"]);
    second(file(&[], None, &c)).is_refused(&[SECOND, "says nothing under split.no"]);
    second(part(1, 3, &c)).is_refused(&[SECOND, "split.count"]);
    let other = |architecture, tensors| {
        let keys = [(NUMBER, 1), (COUNT, 2), (TENSORS, tensors)];
        file(&keys, architecture, &c)
    };
    second(other(None, 4)).is_refused(&[SECOND, "split.tensors.count"]);
    second(other(Some("qwen2"), 3)).is_refused(&[SECOND, "general.architecture"]);
    second(part(1, 2, &[])).is_refused(&["have 2 tensors"]);
    second(part(1, 2, &[("a", 3.0)])).is_refused(&["two tensors are named \"a\""]);
}
