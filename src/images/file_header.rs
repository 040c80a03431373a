//! The header of an image's file: its format and size. Nothing is decoded before this was checked.

use imagesize::ImageType;

use super::bounds::check_size;

/// The format and the size of an image's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// The encoding of the file.
    pub format: FileFormat,
    /// Pixels of a row as they are stored: the orientation may exchange width and height.
    pub width: usize,
    /// Rows as they are stored.
    pub height: usize,
}

/// The encoding of an image's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Their names say it.
pub enum FileFormat {
    Png,
    Jpeg,
    WebP,
    Gif,
    Bmp,
}

impl FileHeader {
    /// Reads the header. The error says what is wrong with the file.
    pub fn read(file: &[u8]) -> Result<FileHeader, String> {
        let kind = imagesize::image_type(file);
        let format = match kind {
            Ok(ImageType::Png) => FileFormat::Png,
            Ok(ImageType::Jpeg) => FileFormat::Jpeg,
            Ok(ImageType::Webp) => FileFormat::WebP,
            Ok(ImageType::Gif) => FileFormat::Gif,
            Ok(ImageType::Bmp) => FileFormat::Bmp,
            _ => return Err("it is none of png, jpeg, webp, gif and bmp".into()),
        };
        let size = imagesize::blob_size(file);
        let size = size.map_err(|_| "its header is damaged".to_owned())?;
        let (width, height) = (size.width, size.height);
        check_size([width, height])?;
        Ok(FileHeader {
            format,
            width,
            height,
        })
    }
}
