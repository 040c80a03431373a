//! Describes a vision tower and its projector, from their header. Reads no tensor and requests no device.

use serde::Serialize;

use super::inspect::{TensorTypeReport, tensor_types};
use super::vision::{self, ARCHITECTURE, VisionConfig};
use crate::images::ImageGeometry;
use crate::weights::Gguf;

/// The description of a vision tower and its projector in their header. Parts that this build does not support are `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "InspectedProjector"))]
#[serde(rename_all = "camelCase")]
pub struct InspectedTower {
    /// `general.name`.
    pub name: Option<String>,
    /// The family of models, as `clip.projector_type` names it.
    pub kind: Option<String>,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Bytes of all tensors.
    pub loaded_bytes: u64,
    /// Types of the tensors, the one with the most bytes first.
    pub tensor_types: Vec<TensorTypeReport>,
    /// Its sizes, if the family is known.
    pub hyperparameters: Option<TowerSizes>,
}

/// The sizes of a vision tower.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TowerSizes {
    /// The embedding length of the text models that it fits.
    pub embedding_length: usize,
    /// The placeholder of an image in a prompt.
    pub placeholder: &'static str,
    /// Layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub dim: usize,
    /// Width of the feed-forward layers.
    pub ffn_dim: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width and height of a patch, in pixels.
    pub patch_pixels: usize,
    /// The sizes and tokens of images.
    pub images: ImageSizes,
}

/// Sizes of images, and how many tokens they become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ImageSizes {
    /// `square`: every image is stretched to one square. `tiles`: it is cut into squares, beside the whole image as one. `any`: it is
    /// seen in a size near its own.
    #[cfg_attr(test, ts(type = r#""square" | "tiles" | "any""#))]
    pub kind: &'static str,
    /// Width and height of a square, in pixels; of `any`, what both sides are multiples of.
    pub side_pixels: usize,
    /// The longest side that an image is resized to before it is cut.
    pub longest_edge_pixels: Option<usize>,
    /// The fewest tokens of an image, without the text around it.
    pub min_tokens: usize,
    /// The most tokens of an image, without the text around it.
    pub max_tokens: usize,
}

/// Whether a file is a vision tower and not a text model.
pub fn is_tower(gguf: &Gguf) -> bool {
    matches!(
        gguf.metadata.str("general.architecture"),
        Ok(Some(ARCHITECTURE))
    )
}

/// Reports on the header of a vision tower.
pub fn inspect_tower(gguf: &Gguf) -> InspectedTower {
    let text = |key: &str| gguf.metadata.str(key).ok().flatten().map(str::to_owned);
    let config = vision::read_config(&gguf.metadata).ok();
    let kind = config.as_ref().map(|config| config.kind.to_owned());
    InspectedTower {
        name: text("general.name"),
        kind: kind.or_else(|| text("clip.projector_type")),
        parameters: gguf.tensors.iter().map(|it| it.element_count()).sum(),
        loaded_bytes: gguf.tensors.iter().map(|it| it.size_bytes).sum(),
        tensor_types: tensor_types(gguf),
        hyperparameters: config.as_ref().map(sizes),
    }
}

fn sizes(config: &VisionConfig) -> TowerSizes {
    TowerSizes {
        embedding_length: config.projection_dim,
        placeholder: config.tower.markup.placeholder,
        layers: config.layers.layers.len(),
        dim: config.layers.dim,
        ffn_dim: config.layers.ffn_dim,
        heads: config.layers.heads,
        patch_pixels: config.patch_size,
        images: image_sizes(config.squares.geometry),
    }
}

fn image_sizes(geometry: ImageGeometry) -> ImageSizes {
    let summary = geometry.summary();
    let [min_tokens, max_tokens] = summary.rows;
    ImageSizes {
        kind: summary.kind,
        side_pixels: summary.side_pixels,
        longest_edge_pixels: summary.longest_edge_pixels,
        min_tokens,
        max_tokens,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::weights::BytesSource;

    fn header(name: &str) -> Gguf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/images");
        let file = std::fs::read(folder.join(name)).unwrap();
        pollster::block_on(Gguf::read(&BytesSource(&file))).unwrap()
    }

    fn images(name: &str) -> ImageSizes {
        let gguf = header(name);
        assert!(is_tower(&gguf), "{name}");
        inspect_tower(&gguf).hyperparameters.unwrap().images
    }

    #[test]
    fn each_family_says_what_becomes_of_an_image() {
        let square = images("gemma3.mmproj.gguf");
        assert_eq!((square.kind, square.longest_edge_pixels), ("square", None));
        assert_eq!(square.min_tokens, square.max_tokens);
        let tiles = images("idefics3.mmproj.gguf");
        assert_eq!(tiles.kind, "tiles");
        let edge = tiles.longest_edge_pixels.unwrap();
        let columns = edge.div_ceil(tiles.side_pixels);
        // One row of tiles or a square of them, and the whole image.
        assert_eq!(
            tiles.max_tokens * (columns + 1),
            tiles.min_tokens * (columns * columns + 1)
        );
        let any = images("qwen3vl.mmproj.gguf");
        assert_eq!(any.kind, "any");
        assert!(any.min_tokens < any.max_tokens && any.max_tokens <= 1024);
        assert!(!is_tower(&header("gemma3.gguf")));
    }

    #[test]
    fn an_unknown_family_is_named() {
        let mut gguf = header("gemma3.mmproj.gguf");
        gguf.metadata.insert("clip.projector_type", "new");
        let report = inspect_tower(&gguf);
        assert_eq!(report.kind.as_deref(), Some("new"));
        assert_eq!(report.hyperparameters, None);
        assert!(report.parameters > 0 && report.loaded_bytes > 0);
    }
}
