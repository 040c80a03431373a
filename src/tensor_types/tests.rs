//! Compares codecs with blocks computed by hand, with blocks of another implementation and with error
//! bounds. `weights/shared_models_tests.rs` compares them with files that ggml made.

use half::f16;
use proptest::prelude::*;

use super::*;

fn dequantized(ty: TensorType, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![f32::NAN; bytes.len() / ty.block_bytes() * ty.block_len()];
    ty.dequantize(bytes, &mut out);
    out
}

#[test]
fn ids_names_and_sizes_equal_ggmls() {
    let ggmls = vectors::types();
    assert!(ggmls.len() > 30);
    for ggml in &ggmls {
        assert_eq!(ggml_type_name(ggml.gguf_id), Some(ggml.name));
    }
    for &ty in TensorType::ALL {
        let ggml = ggmls.iter().find(|ggml| ggml.name == ty.name());
        let ggml = ggml.unwrap_or_else(|| panic!("ggml has no {ty}"));
        assert_eq!(ty.gguf_id(), ggml.gguf_id, "{ty}");
        assert_eq!(ty.block_len(), ggml.block_len, "{ty}");
        assert_eq!(ty.block_bytes(), ggml.block_bytes, "{ty}");
        assert_eq!(TensorType::from_gguf_id(ty.gguf_id()), Some(ty));
        assert_eq!(ty.lowercase_name(), ty.name().to_lowercase());
    }
    assert_eq!(TensorType::from_gguf_id(9), None);
    assert_eq!(ggml_type_name(1000), None);
}

#[test]
fn every_type_is_in_the_documentation() {
    let models = include_str!("../../docs/models.md");
    let tables = models.lines().filter(|line| line.starts_with('|'));
    let words = tables.flat_map(|row| row.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let words: Vec<&str> = words.collect();
    for ty in TensorType::ALL {
        assert!(
            words.contains(&ty.name()),
            "docs/models.md does not list {ty}"
        );
    }
}

#[test]
fn floats_round_to_nearest_even() {
    // 1 + 2^-11 is halfway between two f16, and so is 1 + 3 * 2^-11.
    let values = [1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11), 70_000.0];
    let f16s = dequantized(TensorType::F16, &TensorType::F16.quantize(&values));
    assert_eq!(f16s, [1.0, 1.0 + 2f32.powi(-9), f32::INFINITY]);
    let values = [1.0 + 2f32.powi(-8), 1.0 + 3.0 * 2f32.powi(-8), -3e38];
    let bf16s = dequantized(TensorType::BF16, &TensorType::BF16.quantize(&values));
    assert_eq!(bf16s[..2], [1.0, 1.0 + 2f32.powi(-6)]);
    assert!((bf16s[2] / -3e38 - 1.0).abs() < 1.0 / 256.0);
    let values = [0.1, -0.0, f32::MIN_POSITIVE];
    let f32s = dequantized(TensorType::F32, &TensorType::F32.quantize(&values));
    assert_eq!(f32s.map_bits(), values.to_vec().map_bits());
}

trait MapBits {
    fn map_bits(&self) -> Vec<u32>;
}

impl MapBits for Vec<f32> {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|value| value.to_bits()).collect()
    }
}

#[test]
fn q8_0_block() {
    let mut values = [0.0f32; 32];
    // d = 1 makes rounding half away from zero visible.
    values[..6].copy_from_slice(&[127.0, -127.0, 2.5, -2.5, 0.4, -3.6]);
    let bytes = TensorType::Q8_0.quantize(&values);
    assert_eq!(bytes.len(), 34);
    assert_eq!(bytes[..2], f16::from_f32(1.0).to_le_bytes());
    assert_eq!(
        bytes[2..8],
        [127, -127i8 as u8, 3, -3i8 as u8, 0, -4i8 as u8]
    );
    let back = dequantized(TensorType::Q8_0, &bytes);
    assert_eq!(back[..6], [127.0, -127.0, 3.0, -3.0, 0.0, -4.0]);
}

#[test]
fn q4_0_block() {
    let mut values = [0.0f32; 32];
    // The extreme is negative: d = 1, and 8 itself would need q = 16.
    values[0] = -8.0;
    values[1] = 7.9;
    values[16] = 3.4;
    values[17] = -2.6;
    let bytes = TensorType::Q4_0.quantize(&values);
    assert_eq!(bytes.len(), 18);
    assert_eq!(bytes[..2], f16::from_f32(1.0).to_le_bytes());
    // Element j low, element j + 16 high.
    assert_eq!(bytes[2..5], [0xB0, 0x5F, 0x88]);
    let back = dequantized(TensorType::Q4_0, &bytes);
    assert_eq!(
        (back[0], back[1], back[2], back[16], back[17]),
        (-8.0, 7.0, 0.0, 3.0, -3.0)
    );
    // A positive extreme makes d negative.
    values[0] = 16.0;
    let bytes = TensorType::Q4_0.quantize(&values);
    assert_eq!(bytes[..2], f16::from_f32(-2.0).to_le_bytes());
    assert_eq!(dequantized(TensorType::Q4_0, &bytes)[0], 16.0);
}

#[test]
fn q6_k_block() {
    // d * scale = 1 in the first group, -0.5 in the last; each element has its own place.
    let mut bytes = [0u8; 210];
    bytes[208..].copy_from_slice(&f16::from_f32(0.25).to_le_bytes());
    bytes[192] = 4;
    bytes[207] = -2i8 as u8;
    // Element 0: q = 0b11_0101. Element 1: q = 0.
    bytes[0] = 0x05;
    bytes[128] = 0b11;
    // Element 255: last run of the second half, upper nibble, topmost bits: q = 0b10_1110.
    bytes[127] = 0xE0;
    bytes[191] = 0b10 << 6;
    let values = dequantized(TensorType::Q6_K, &bytes);
    assert_eq!(values[..2], [21.0, -32.0]);
    assert_eq!(values[255], -0.5 * 14.0);
    assert_eq!(values[254], -0.5 * -32.0);
    assert_eq!(values[100], 0.0);

    let (mut quants, mut scales) = (Vec::new(), Vec::new());
    TensorType::Q6_K.repack(&bytes, &mut quants, &mut scales);
    // Element 255 is the upper nibble of the last of 128 bytes, and the upper bits of the last of 64.
    assert_eq!((quants[0], quants[127], quants.len()), (0x05, 0xE0, 192));
    assert_eq!((quants[128], quants[191]), (0b11, 0b10 << 6));
    assert_eq!((&scales[..18], &scales[18..]), (&bytes[192..], &[0; 2][..]));
}

/// The values are equal to the last bit, because both implementations round in the same order.
#[test]
fn blocks_decode_as_in_another_implementation() {
    let vectors = vectors::decoded();
    for &ty in TensorType::ALL.iter().filter(|ty| ty.has_scales()) {
        assert!(vectors.iter().any(|vectors| vectors.ty == ty), "{ty}");
    }
    for vectors in vectors {
        let values = dequantized(vectors.ty, &vectors.bytes);
        assert_eq!(values, vectors.values, "{}", vectors.ty);
    }
}

#[test]
fn values_quantize_as_in_another_implementation() {
    let vectors = vectors::encoded();
    assert!(vectors.len() >= 5);
    for vectors in vectors {
        let bytes = vectors.ty.quantize(&vectors.values);
        assert_eq!(bytes, vectors.bytes, "{}", vectors.ty);
    }
}

#[test]
fn blocks_of_zeros_stay_zero() {
    for ty in TensorType::quantizable() {
        let back = dequantized(ty, &ty.quantize(&[0.0; 512]));
        assert_eq!(back, [0.0; 512], "{ty}");
    }
}

#[test]
fn blocks_repack_into_the_layout_of_the_kernels() {
    let bytes: Vec<u8> = (0..68).collect();
    let repacked = |ty: TensorType, bytes: &[u8]| {
        let (mut quants, mut scales) = (vec![99], vec![98]);
        ty.repack(bytes, &mut quants, &mut scales);
        (quants, scales)
    };
    let (quants, scales) = repacked(TensorType::Q8_0, &bytes);
    assert_eq!(scales, [98, 0, 1, 34, 35]);
    assert_eq!(quants[..3], [99, 2, 3]);
    assert_eq!(quants[32..35], [33, 36, 37]);
    assert_eq!(quants.len(), 65);

    let (quants, scales) = repacked(TensorType::Q4_0, &bytes[..36]);
    assert_eq!(scales, [98, 0, 1, 18, 19]);
    assert_eq!(quants[16..19], [17, 20, 21]);
    assert_eq!(quants.len(), 33);

    for ty in [TensorType::F32, TensorType::F16, TensorType::BF16] {
        let (quants, scales) = repacked(ty, &bytes);
        assert_eq!((&quants[1..], &scales[..]), (&bytes[..], &[98][..]));
    }
}

/// The numbers of the table are those that the types' code produces.
#[test]
fn rows_describe_what_repack_appends() {
    for &ty in TensorType::ALL {
        let elements = ty.block_len().max(BLOCK_COLS);
        let bytes = vec![0; elements / ty.block_len() * ty.block_bytes()];
        let (mut quants, mut scales) = (Vec::new(), Vec::new());
        ty.repack(&bytes, &mut quants, &mut scales);
        let (scale_bytes, blocks) = ty.scale_bytes();
        assert_eq!(quants.len(), 4 * blocks * ty.kernel_block_words(), "{ty}");
        assert_eq!(scales.len(), scale_bytes, "{ty}");
    }
}

#[test]
#[should_panic(expected = "IQ4_XS cannot be quantized to")]
fn quantizing_to_a_type_that_is_only_decoded_panics() {
    TensorType::IQ4_XS.quantize(&[0.0; 256]);
}

#[test]
#[should_panic(expected = "Q8_0 has blocks of 34 bytes")]
fn a_part_of_a_block_is_refused() {
    TensorType::Q8_0.dequantize(&[0; 35], &mut [0.0; 32]);
}

proptest! {
    #[test]
    fn quantization_error_is_bounded(values in prop::collection::vec(-100.0f32..100.0, 256)) {
        let extreme = values.iter().fold(0.0f32, |e, x| e.max(x.abs()));
        for ty in TensorType::quantizable() {
            let bound = extreme * ty.quantization_error();
            let back = dequantized(ty, &ty.quantize(&values));
            prop_assert_eq!(back.len(), values.len());
            for (value, back) in values.iter().zip(back) {
                prop_assert!((value - back).abs() <= bound, "{ty}: {value} became {back}");
            }
        }
    }
}
