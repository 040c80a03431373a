//! The tensors of recurrent layers: their names and shapes, and the modules that are built from them.

use std::{collections::BTreeMap, ops::Range};

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
    weights::{ByteSource, TensorInfo},
};

/// A matrix of the input: rows of a tensor, in their order in the matrix.
struct Input {
    tensor: &'static str,
    rows: Vec<Range<usize>>,
}

impl Input {
    fn whole(tensor: &'static str, rows: usize) -> Input {
        Input {
            tensor,
            rows: std::iter::once(0..rows).collect(),
        }
    }

    fn row_count(&self) -> usize {
        self.rows.iter().map(Range::len).sum()
    }
}

impl Recurrence {
    /// The matrices of the input, in a model of width `dim`. `has` tells whether the file has a tensor.
    fn inputs(self, dim: usize, has: impl Fn(&str) -> bool) -> Vec<Input> {
        match self {
            Recurrence::ShortConv { .. } => vec![Input::whole("shortconv.in_proj", 3 * dim)],
            Recurrence::Linear(it) => match it.rule {
                Rule::Delta if it.joins_inputs => it.joined_inputs(has("ssm_in")),
                Rule::Delta => vec![
                    Input::whole("attn_qkv", self.channels(dim)),
                    Input::whole("attn_gate", it.inner()),
                    Input::whole("ssm_alpha", it.heads),
                    Input::whole("ssm_beta", it.heads),
                ],
                // Gates, what is convolved, rates.
                Rule::Mamba2 => {
                    let rows = it.inner() + self.channels(dim) + it.heads;
                    vec![Input::whole("ssm_in", rows)]
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
    /// The matrices of the delta rule in files that join them by key heads: what is convolved, gates, rates, shares.
    fn joined_inputs(self, joins_all: bool) -> Vec<Input> {
        let of_key = self.heads / self.key_heads;
        let values = of_key * self.value_len;
        // Rows of a key head: its query, its key, and the values and gates of its heads.
        let period = 2 * (self.key_len + values);
        let parts = |tensor, period: usize, parts: &[(usize, usize)]| Input {
            tensor,
            rows: parts
                .iter()
                .flat_map(|(first, len)| {
                    let firsts = (0..self.key_heads).map(move |head| head * period + first);
                    firsts.map(move |first| first..first + len)
                })
                .collect(),
        };
        let [convolved, gates] = match joins_all {
            true => {
                let queries = (0, self.key_len);
                let keys = (self.key_len, self.key_len);
                let convolved = [queries, keys, (2 * self.key_len, values)];
                [
                    parts("ssm_in", period, &convolved),
                    parts("ssm_in", period, &[(2 * self.key_len + values, values)]),
                ]
            }
            false => {
                let keys = self.key_heads * self.key_len;
                [
                    Input::whole("attn_qkv", 2 * keys + self.inner()),
                    Input::whole("attn_gate", self.inner()),
                ]
            }
        };
        let rates = parts("ssm_ba", 2 * of_key, &[(of_key, of_key)]);
        let shares = parts("ssm_ba", 2 * of_key, &[(0, of_key)]);
        vec![convolved, gates, rates, shares]
    }

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
        let weight = |part: &str| name(layer, &format!("{part}.weight"));
        let mut rows = BTreeMap::new();
        for input in recurrence.inputs(dim, |part| self.is_there(&weight(part))) {
            *rows.entry(input.tensor).or_insert(0) += input.row_count();
        }
        for (part, rows) in rows {
            self.needed(&weight(part), &[dim, rows])?;
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
        let norm = name(layer, "ssm_norm.weight");
        if !linear.may_lack_norm || self.is_there(&norm) {
            self.vector(&norm, linear.norm()[0])?;
        }
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
        let weight = |part: &str| name(layer, &format!("{part}.weight"));
        let inputs = recurrence.inputs(config.dim, |part| {
            self.tensors.find(&weight(part)).is_some()
        });
        let projections = self.projections(layer, &inputs).await?;
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
        let (output_name, _) = recurrence.output(config.dim);
        Ok(Recurrent {
            attn_norm,
            projections,
            convolution,
            scan,
            output: self.linear(&name(layer, output_name)).await?,
            output_name,
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
    async fn projections(&mut self, layer: usize, inputs: &[Input]) -> Result<Projections> {
        let mut joined: Vec<Vec<(&TensorInfo, Range<usize>)>> = Vec::new();
        let mut places = Vec::new();
        let (mut ty, mut at, mut bytes) = (None, 0, 0);
        for input in inputs {
            let weight = name(layer, &format!("{}.weight", input.tensor));
            let tensor = self.tensors.tensor(&weight)?;
            let rows = input.rows.iter().map(|rows| (tensor, rows.clone()));
            let share = input.row_count() as u64;
            let more = DeviceBytes::of(tensor).largest() * share / tensor.row_count().max(1);
            match joined.last_mut() {
                Some(last) if ty == Some(tensor.ty) && bytes + more <= self.max_binding_bytes => {
                    last.extend(rows);
                    bytes += more;
                }
                _ => {
                    joined.push(rows.collect());
                    (ty, at, bytes) = (Some(tensor.ty), 0, more);
                }
            }
            places.push(Place {
                matrix: joined.len() - 1,
                at,
            });
            at += input.row_count();
        }
        let mut linears = Vec::new();
        for rows in joined {
            linears.push(linear_of(self.tensors.rows(&rows).await?, None));
        }
        let is_whole = |input: &Input| input.rows.len() == 1 && input.rows[0].start == 0;
        let names = match inputs.iter().all(is_whole) {
            true => inputs.iter().map(|input| input.tensor).collect(),
            false => Vec::new(),
        };
        Ok(Projections {
            linears,
            places,
            names,
        })
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
                // The convolved columns hold x, B and C: values, keys and queries.
                (places[0], rates, rates, [inner + keys, inner, 0])
            }
        };
        let [norm_len, group] = it.norm();
        let norm = name(layer, "ssm_norm.weight");
        let normalizes = self.tensors.find(&norm).is_some() || !it.may_lack_norm;
        let norm = match normalizes {
            true => self.floats(&norm).await?,
            false => vec![1.0; norm_len],
        };
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
                normalizes,
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
