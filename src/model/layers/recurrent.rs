//! Recurrent layers: a causal convolution, and in most kinds a recurrence behind it.

use burn::tensor::Tensor;

use super::linear::{Join, Linear, Norm};
use crate::ops::{
    Finish, Variant,
    causal_conv::{ConvShape, causal_conv},
    gated_norm::{GatedNormShape, gated_norm},
    linear_recurrence::{RecurrenceShape, linear_recurrence},
    state_memory::StateMemory,
    step::Step,
};

/// `x + output(scan(conv(projections(norm(x)))))`
#[derive(Debug, Clone)]
pub struct Recurrent {
    /// `attn_norm`
    pub attn_norm: Norm,
    /// The matrices of the input.
    pub projections: Projections,
    /// The convolution.
    pub convolution: Convolution,
    /// The recurrence after the convolution; `None` in LFM2.
    pub scan: Option<Scan>,
    /// `shortconv.out_proj`, `ssm_out`
    pub output: Linear,
    /// Name of the matrix of `output` after the layer's.
    pub output_name: &'static str,
    /// The way in which the output is added to the residual stream.
    pub join: Join,
    /// The kernels that the tuner chose for the device.
    pub variant: Variant,
}

/// Matrices that are multiplied by one input. Those of one type are joined.
#[derive(Debug, Clone)]
pub struct Projections {
    /// The joined matrices.
    pub linears: Vec<Linear>,
    /// The place of each matrix's result.
    pub places: Vec<Place>,
    /// Names of the matrices after the layer's, in the order of `places`; empty if their rows are not in the order of the
    /// file.
    pub names: Vec<&'static str>,
}

/// The result of a matrix among those of the matrices that it is joined with.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Index of the joined matrix.
    pub matrix: usize,
    /// First column.
    pub at: usize,
}

/// A causal convolution.
#[derive(Debug, Clone)]
pub struct Convolution {
    /// `shortconv.conv`, `ssm_conv1d`, `[channels * taps]`
    pub weights: Tensor<1>,
    /// `[channels]`
    pub bias: Tensor<1>,
    /// Index of the joined matrix whose result it reads.
    pub of: usize,
    pub shape: ConvShape,
}

/// A recurrence, and the gate of its output, which may have a norm.
#[derive(Debug, Clone)]
pub struct Scan {
    /// `ssm_a`, `ssm_dt` and `ssm_d`, `[3 * heads]`
    pub heads: Tensor<1>,
    /// `ssm_norm`; ones where the output is not normalized.
    pub norm: Tensor<1>,
    /// Indices of the joined matrices of rates, shares and gates.
    pub rates: usize,
    pub shares: usize,
    pub gate: usize,
    pub shape: RecurrenceShape,
    pub norm_shape: GatedNormShape,
}

impl Recurrent {
    /// `x` `[tokens, dim]`. Continues the states of the step's sequences.
    pub fn forward(&self, x: Tensor<2>, states: &mut StateMemory, step: &Step) -> Tensor<2> {
        self.onto(x.clone(), x, states, step)
    }

    /// Same as [`Self::forward`], with the output added to `residual` instead of `x`.
    pub fn onto(
        &self,
        residual: Tensor<2>,
        x: Tensor<2>,
        states: &mut StateMemory,
        step: &Step,
    ) -> Tensor<2> {
        let (input, norm) = Norm::input(Some(&self.attn_norm), x);
        let linears = self.projections.linears.iter();
        let parts = linears.map(|it| it.product(input.clone(), norm.clone(), Finish::Plain, None));
        let parts: Vec<Tensor<2>> = parts.collect();
        let conv = &self.convolution;
        let mut y = causal_conv(
            parts[conv.of].clone(),
            conv.weights.clone(),
            conv.bias.clone(),
            states,
            step,
            conv.shape,
            self.variant,
        );
        if let Some(scan) = &self.scan {
            let numbers = [scan.rates, scan.shares].map(|matrix| parts[matrix].clone());
            let heads = scan.heads.clone();
            let variant = self.variant;
            y = linear_recurrence(y, numbers, heads, states, step, scan.shape, variant);
            let gate = parts[scan.gate].clone();
            y = gated_norm(y, gate, scan.norm.clone(), scan.norm_shape, variant);
        }
        self.join.onto(residual, &self.output, y)
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        self.variant = variant;
        self.attn_norm.variant = variant;
        self.output.variant = variant;
        let linears = self.projections.linears.iter_mut();
        linears.for_each(|linear| linear.variant = variant);
    }
}
