//! Measures the cost of a workgroup barrier on a device.

use crate::{
    Error, Result,
    device::{ComputeDevice, read, upload_words},
    ops::barriers::barriers,
};

/// Workgroups that wait at barriers concurrently.
const WORKGROUPS: usize = 64;
/// Two counts, because the difference of their times contains no launch overhead.
const BARRIERS: [usize; 2] = [1, 65];
const ROUNDS: usize = 3;

/// Microseconds that a barrier costs a workgroup of 64 lanes while the device is full of them: some
/// nanoseconds on a GPU, more than one microsecond where lanes are emulated.
///
/// # Errors
/// Fails when the device failed or miscounts.
pub async fn barrier_us(device: &ComputeDevice) -> Result<f64> {
    let mut out = upload_words(vec![0; WORKGROUPS], [WORKGROUPS], device.tensors());
    let mut best_ms = [f64::INFINITY; 2];
    for round in 0..=ROUNDS {
        for (count, best_ms) in BARRIERS.into_iter().zip(&mut best_ms) {
            let start_ms = device.now_ms();
            out = barriers(out, count);
            device.sync().await?;
            // The first round compiles.
            if round > 0 {
                *best_ms = best_ms.min(device.now_ms() - start_ms);
            }
        }
    }
    let counted = read::<u32>(out.into_dispatch()).await;
    let counted = counted.map_err(|e| device.failure(e))?;
    if counted.iter().any(|count| *count as usize != BARRIERS[1]) {
        return Err(Error::NoDevice("barriers do not work".into()));
    }
    let difference = (BARRIERS[1] - BARRIERS[0]) * WORKGROUPS;
    Ok((best_ms[1] - best_ms[0]).max(0.0) * 1e3 / difference as f64)
}
