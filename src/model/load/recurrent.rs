//! The tensors of recurrent layers: their names and shapes, and the modules that are built from them.

use super::{
    layout::DeviceBytes,
    modules::{Loader, linear_of, name},
    tensors::Check,
};
use crate::{
    Error, Result,
    model::{
        config::{LinearRecurrence, Recurrence, Rule},
        layers::{
            linear::Join,
            recurrent::{Convolution, Place, Projections, Recurrent, Scan},
        },
    },
    ops::{
        Variant, causal_conv::ConvShape, gated_norm::GatedNormShape,
        linear_recurrence::RecurrenceShape,
    },
    weights::ByteSource,
};

impl Recurrence {
    /// The matrices of the input: names and rows, in a model of width `dim`.
    fn inputs(self, dim: usize) -> Vec<(&'static str, usize)> {
        match self {
            Recurrence::ShortConv { .. } => vec![("shortconv.in_proj", 3 * dim)],
            Recurrence::Linear(it) => match it.rule {
                Rule::Delta => vec![
                    ("attn_qkv", self.channels(dim)),
                    ("attn_gate", it.inner()),
                    ("ssm_alpha", it.heads),
                    ("ssm_beta", it.heads),
                ],
                // Gates, what is convolved, rates.
                Rule::Mamba2 => {
                    vec![("ssm_in", it.inner() + self.channels(dim) + it.heads)]
                }
            },
        }
    }

    /// Name of the matrix of the output, and its columns in a model of width `dim`.
    fn output(self, dim: usize) -> (&'static str, usize) {
        match self {
            Recurrence::ShortConv { .. } => ("shortconv.out_proj", dim),
            Recurrence::Linear(it) => ("ssm_out", it.inner()),
        }
    }

    /// Name of the convolution's weights.
    fn convolution(self) -> &'static str {
        match self {
            Recurrence::ShortConv { .. } => "shortconv.conv",
            Recurrence::Linear(_) => "ssm_conv1d",
        }
    }
}

impl LinearRecurrence {
    /// Length of the norm of the output, and elements that are normalized together.
    fn norm(self) -> [usize; 2] {
        match self.rule {
            Rule::Delta => [self.value_len; 2],
            Rule::Mamba2 => [self.inner(), self.inner() / self.key_heads],
        }
    }
}

impl Check<'_> {
    /// The tensors of a recurrent layer.
    pub(super) fn recurrent(&mut self, layer: usize) -> Result<()> {
        let dim = self.config.dim;
        let recurrence = of_config(self.config.recurrence)?;
        self.norm(&name(layer, "attn_norm"), dim)?;
        for (part, rows) in recurrence.inputs(dim) {
            self.needed(&name(layer, &format!("{part}.weight")), &[dim, rows])?;
        }
        let (output, columns) = recurrence.output(dim);
        self.needed(&name(layer, &format!("{output}.weight")), &[columns, dim])?;
        let convolution = name(layer, recurrence.convolution());
        let channels = recurrence.channels(dim);
        self.needed(
            &format!("{convolution}.weight"),
            &[recurrence.taps(), channels],
        )?;
        let Recurrence::Linear(linear) = recurrence else {
            return Ok(());
        };
        self.vector(&name(layer, "ssm_a"), linear.heads)?;
        self.vector(&name(layer, "ssm_dt.bias"), linear.heads)?;
        self.vector(&name(layer, "ssm_norm.weight"), linear.norm()[0])?;
        match linear.rule {
            Rule::Delta => Ok(()),
            Rule::Mamba2 => {
                self.vector(&format!("{convolution}.bias"), channels)?;
                self.vector(&name(layer, "ssm_d"), linear.heads)
            }
        }
    }
}

impl<S: ByteSource> Loader<'_, S> {
    /// A recurrent layer.
    pub(super) async fn recurrent(&mut self, layer: usize) -> Result<Recurrent> {
        let config = self.config;
        let recurrence = of_config(config.recurrence)?;
        let attn_norm = self.norm(&name(layer, "attn_norm")).await?;
        let inputs = recurrence.inputs(config.dim);
        let names: Vec<&str> = inputs.iter().map(|(part, _)| *part).collect();
        let projections = self.projections(layer, &names).await?;
        let mut convolved = projections.places[0];
        if let Recurrence::Linear(it) = recurrence
            && it.rule == Rule::Mamba2
        {
            convolved.at = it.inner();
        }
        let channels = recurrence.channels(config.dim);
        let convolution = name(layer, recurrence.convolution());
        let weights = self.floats(&format!("{convolution}.weight")).await?;
        let bias = match self.tensors.find(&format!("{convolution}.bias")) {
            Some(_) => self.floats(&format!("{convolution}.bias")).await?,
            None => vec![0.0; channels],
        };
        let convolution = Convolution {
            weights: self.tensors.vector(weights),
            bias: self.tensors.vector(bias),
            of: convolved.matrix,
            shape: ConvShape {
                channels,
                taps: recurrence.taps(),
                is_gated: matches!(recurrence, Recurrence::ShortConv { .. }),
                at: convolved.at,
                stride: projections.linears[convolved.matrix].weight.shape.rows,
            },
        };
        let scan = match recurrence {
            Recurrence::ShortConv { .. } => None,
            Recurrence::Linear(it) => {
                let kept = convolution.shape.state_words();
                Some(self.scan(layer, it, &projections, kept).await?)
            }
        };
        let (output, _) = recurrence.output(config.dim);
        Ok(Recurrent {
            attn_norm,
            projections,
            convolution,
            scan,
            output: self.linear(&name(layer, output)).await?,
            join: Join {
                norm: None,
                sum_norm: None,
                scale: config.residual_scale,
                out_scale: None,
            },
            variant: Variant::PORTABLE,
        })
    }

    /// Matrices of one input, joined where they follow each other and have one type.
    async fn projections(&mut self, layer: usize, names: &[&str]) -> Result<Projections> {
        let mut joined: Vec<Vec<String>> = Vec::new();
        let mut places = Vec::new();
        let (mut ty, mut rows, mut bytes) = (None, 0, 0);
        for part in names {
            let full = name(layer, &format!("{part}.weight"));
            let tensor = self.tensors.tensor(&full)?;
            let more = DeviceBytes::of(tensor).largest();
            match joined.last_mut() {
                Some(last) if ty == Some(tensor.ty) && bytes + more <= self.max_binding_bytes => {
                    last.push(full);
                    bytes += more;
                }
                _ => {
                    joined.push(vec![full]);
                    (ty, rows, bytes) = (Some(tensor.ty), 0, more);
                }
            }
            places.push(Place {
                matrix: joined.len() - 1,
                at: rows,
            });
            rows += tensor.row_count() as usize;
        }
        let mut linears = Vec::new();
        for names in joined {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            linears.push(linear_of(self.tensors.matrix(&names).await?, None));
        }
        Ok(Projections { linears, places })
    }

    async fn scan(
        &mut self,
        layer: usize,
        it: LinearRecurrence,
        projections: &Projections,
        state_at: usize,
    ) -> Result<Scan> {
        let mut heads = self.floats(&name(layer, "ssm_a")).await?;
        heads.extend(self.floats(&name(layer, "ssm_dt.bias")).await?);
        let (keys, inner) = (it.key_heads * it.key_len, it.inner());
        let places = &projections.places;
        let stride = |matrix: usize| projections.linears[matrix].weight.shape.rows;
        let (gate, rates, shares, at) = match it.rule {
            Rule::Delta => {
                heads.extend(vec![0.0; it.heads]);
                (places[1], places[2], places[3], [0, keys, 2 * keys])
            }
            Rule::Mamba2 => {
                heads.extend(self.floats(&name(layer, "ssm_d")).await?);
                let mut rates = places[0];
                rates.at = 2 * inner + 2 * keys;
                // What is convolved holds x, B and C: values, keys and queries.
                (places[0], rates, rates, [inner + keys, inner, 0])
            }
        };
        let [_, group] = it.norm();
        let norm = self.floats(&name(layer, "ssm_norm.weight")).await?;
        let is_delta = it.rule == Rule::Delta;
        Ok(Scan {
            heads: self.tensors.vector(heads),
            norm: self.tensors.vector(norm),
            rates: rates.matrix,
            shares: shares.matrix,
            gate: gate.matrix,
            shape: RecurrenceShape {
                heads: it.heads,
                key_heads: it.key_heads,
                key_len: it.key_len,
                value_len: it.value_len,
                is_tiled: it.is_tiled,
                is_delta,
                eps: self.config.norm_eps,
                q_scale: match it.rule {
                    Rule::Delta => (it.key_len as f32).sqrt().recip(),
                    Rule::Mamba2 => 1.0,
                },
                at,
                rates: [rates.at, stride(rates.matrix)],
                shares: [shares.at, stride(shares.matrix)],
                state_at,
            },
            norm_shape: GatedNormShape {
                group,
                gates_first: !is_delta,
                eps: self.config.norm_eps,
                at: gate.at,
                stride: stride(gate.matrix),
            },
        })
    }
}

fn of_config(recurrence: Option<Recurrence>) -> Result<Recurrence> {
    recurrence.ok_or_else(|| Error::Internal("a recurrent layer without a kind".into()))
}
