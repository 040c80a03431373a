//! The form of an image in each family, and the recognition of the families.

use std::collections::BTreeSet;

use super::*;
use crate::images::{Image, ImageFormat, ImageGeometry, Part};

#[test]
fn families_have_names_of_their_own() {
    // Files of a projector are read as those of the first family with it.
    for family in FAMILIES {
        let first = FAMILIES.iter().find(|it| it.projector == family.projector);
        let markup = |it: &Family| it.tower.markup;
        assert_eq!(markup(first.unwrap()), markup(family));
    }
    let types = || FAMILIES.iter().flat_map(|it| it.folder.model_types);
    let different: BTreeSet<&&str> = types().collect();
    assert_eq!(different.len(), types().count());
}

/// The text around the pixels of an image, which are dots.
fn text(projector: &str, geometry: ImageGeometry) -> String {
    let family = FAMILIES.iter().find(|it| it.projector == projector);
    let tower = &family.unwrap().tower;
    let format = ImageFormat {
        markup: &tower.markup,
        filter: tower.filter,
        geometry,
    };
    let image = Image {
        width: 2,
        height: 1,
        rgb: vec![0; 6],
    };
    let parts = format.parts(&image).into_iter().map(|part| match part {
        Part::Text(text) => text,
        Part::Pixels(..) => ".".to_owned(),
    });
    parts.collect()
}

#[test]
fn images_stand_between_the_texts_of_the_processors() {
    let whole = ImageGeometry::Stretched { size: 8, rows: 1 };
    let cut = ImageGeometry::Tiles {
        size: 8,
        longest_edge: 16,
        rows: 1,
    };
    assert_eq!(
        text("gemma3", whole),
        "\n\n<start_of_image>.<end_of_image>\n\n"
    );
    let fake = "<fake_token_around_image>";
    assert_eq!(
        text("idefics3", whole),
        format!("{fake}<global-img>.{fake}")
    );
    assert_eq!(
        text("idefics3", cut),
        format!("{fake}<row_1_col_1>.{fake}<row_1_col_2>.\n\n{fake}<global-img>.{fake}")
    );
    assert_eq!(text("lfm2", whole), "<|image_start|>.<|image_end|>");
    assert_eq!(
        text("lfm2", cut),
        "<|image_start|><|img_row_1_col_1|>.<|img_row_1_col_2|>.<|img_thumbnail|>.<|image_end|>"
    );
    assert_eq!(text("gemma4v", whole), "<|image>.<image|>");
    for projector in ["qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger"] {
        assert_eq!(text(projector, whole), ".");
    }
}
