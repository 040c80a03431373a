//! Bare wgpu, without burn or inpage: the yardstick for launches, memory and arithmetic. It has its own
//! device on the adapter that inpage chooses.

use std::time::Instant;

use crate::{
    Outcome,
    timing::{ROUNDS, median, repeats, seconds},
};

const WORKGROUP: u32 = 256;
/// `vec4`s that one invocation copies.
const PER_INVOCATION: u32 = 4;
const COPY: &str = "
@group(0) @binding(0) var<storage, read> from_: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> to_: array<vec4<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>) {
    let stride = count.x * 256u;
    for (var i = id.x; i < arrayLength(&to_); i += stride) {
        to_[i] = from_[i];
    }
}
";

/// Products and sums of vectors in registers. Each statement depends on the one four before it.
const FMA: &str = "
@group(0) @binding(0) var<storage, read> from_: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> to_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = from_[0] + vec4<f32>(f32(id.x));
    let y = from_[1];
    var a = x;
    var b = x + 1.0;
    var c = x + 2.0;
    var d = x + 3.0;
    for (var i = 0u; i < 64u; i++) {
        a = a * y + x;
        b = b * y + x;
        c = c * y + x;
        d = d * y + x;
        a = a * y + x;
        b = b * y + x;
        c = c * y + x;
        d = d * y + x;
    }
    if (a.x + b.x + c.x + d.x == 1.5) {
        to_[0] = a + b + c + d;
    }
}
";
/// Operations of an invocation: rounds, statements, lanes of a vector, a product and a sum.
const FMA_OPERATIONS: usize = 64 * 8 * 4 * 2;

/// A bare device.
pub struct RawGpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    copy: wgpu::ComputePipeline,
    fma: wgpu::ComputePipeline,
}

impl RawGpu {
    pub async fn request() -> Outcome<RawGpu> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::PRIMARY,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapter = instance
            .request_adapter(&wgpu::RequestAdapterOptions {
                power_preference: wgpu::PowerPreference::HighPerformance,
                ..Default::default()
            })
            .await?;
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                required_limits: adapter.limits(),
                ..Default::default()
            })
            .await?;
        let pipeline = |label, source: &str| {
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(label),
                source: wgpu::ShaderSource::Wgsl(source.into()),
            });
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(label),
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: Default::default(),
                cache: None,
            })
        };
        Ok(RawGpu {
            copy: pipeline("copy", COPY),
            fma: pipeline("fma", FMA),
            device,
            queue,
        })
    }

    fn buffer(&self, bytes: usize) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    fn bind(
        &self,
        pipeline: &wgpu::ComputePipeline,
        from: &wgpu::Buffer,
        to: &wgpu::Buffer,
    ) -> wgpu::BindGroup {
        let entries = [(0, from), (1, to)].map(|(binding, buffer)| wgpu::BindGroupEntry {
            binding,
            resource: buffer.as_entire_binding(),
        });
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        })
    }

    fn wait(&self) -> Outcome<()> {
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(())
    }

    /// Encodes and submits one pass of `dispatches` with all resources ready. Returns seconds of CPU time.
    pub fn launch_seconds(&self, dispatches: usize) -> Outcome<f64> {
        let (a, b) = (self.buffer(256), self.buffer(256));
        let groups = [self.bind(&self.copy, &a, &b), self.bind(&self.copy, &b, &a)];
        self.wait()?;
        let start = Instant::now();
        self.pass(&self.copy, dispatches, &groups, 1);
        let taken = seconds(start);
        self.wait()?;
        Ok(taken)
    }

    /// Submits one pass. Each dispatch depends on the previous one.
    fn pass(
        &self,
        pipeline: &wgpu::ComputePipeline,
        dispatches: usize,
        groups: &[wgpu::BindGroup; 2],
        workgroups: u32,
    ) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline);
        for i in 0..dispatches {
            pass.set_bind_group(0, &groups[i % 2], &[]);
            pass.dispatch_workgroups(workgroups, 1, 1);
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
    }

    /// Bytes per second, read and written, of copies of `bytes`: with a command and with a kernel.
    pub fn copy_bandwidths(&self, bytes: usize) -> Outcome<(f64, f64)> {
        let (a, b) = (self.buffer(bytes), self.buffer(bytes));
        let groups = [self.bind(&self.copy, &a, &b), self.bind(&self.copy, &b, &a)];
        let workgroups = bytes.div_ceil((16 * WORKGROUP * PER_INVOCATION) as usize) as u32;
        let command = self.rate(2 * bytes, |count| {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            for i in 0..count {
                let (from, to) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
                encoder.copy_buffer_to_buffer(from, 0, to, 0, bytes as u64);
            }
            self.queue.submit([encoder.finish()]);
        })?;
        let kernel = self.rate(2 * bytes, |count| {
            self.pass(&self.copy, count, &groups, workgroups)
        })?;
        Ok((command, kernel))
    }

    /// Floating point operations per second of a kernel that does nothing else.
    pub fn fma_peak(&self, workgroups: u32) -> Outcome<f64> {
        let (a, b) = (self.buffer(256), self.buffer(256));
        let groups = [self.bind(&self.fma, &a, &b), self.bind(&self.fma, &b, &a)];
        let operations = (workgroups * WORKGROUP) as usize * FMA_OPERATIONS;
        self.rate(operations, |count| {
            self.pass(&self.fma, count, &groups, workgroups)
        })
    }

    /// The rate of `work` per second. `work(n)` does `amount` n times.
    fn rate(&self, amount: usize, work: impl Fn(usize)) -> Outcome<f64> {
        let timed = |count| -> Outcome<f64> {
            let start = Instant::now();
            work(count);
            self.wait()?;
            Ok(seconds(start))
        };
        // The first run also zeroes the buffers.
        timed(2)?;
        let once = std::time::Duration::from_secs_f64(timed(1)?);
        let count = repeats(once, std::time::Duration::from_millis(50));
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            rates.push((amount * count) as f64 / timed(count)?);
        }
        Ok(median(rates))
    }
}
