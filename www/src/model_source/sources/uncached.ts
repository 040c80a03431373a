//! A file that is not kept for the next visit: read by range requests where the server allows it, else downloaded into Blobs, which the browser keeps
//! outside of wasm memory.

import type { Arrival } from "./arrival.js";
import { offerFile } from "./cross_origin_storage.js";
import type { Intake } from "../transfer/intake.js";
import { PartSink, rangeSource } from "./ranges.js";
import { readAhead } from "../transfer/read_ahead.js";
import type { ModelSource } from "../../byte_source.js";
import { transfer } from "../transfer/transfer.js";
import { type Context, jobOf, memoryIntake, verifyHash } from "../transfer/url_file.js";

/** @param reason why the file is not cached; undefined if the app did not want it to be */
export async function uncachedSource(
  context: Context,
  arrival: Arrival,
  reason: string | undefined,
): Promise<void> {
  const { file, onBytes, report, windowBytes } = context;
  const job = jobOf(context);
  const whole = memoryIntake(context, (intake) => {
    onBytes(intake.position, intake.version?.sizeBytes);
    arrival.grow(intake);
  });
  if (file.sha256 === undefined) {
    // The first request asks for what is read first.
    const first = new PartSink(0, windowBytes);
    const sink = await transfer({ ...job, endBytes: windowBytes, whole }, first);
    if (sink === first && first.version !== undefined) {
      report("none", reason);
      const { version, bytes } = first;
      const fetched = bytes.subarray(0, Math.min(windowBytes, version.sizeBytes ?? 0));
      arrival.finish(readAhead(rangeSource(job, version, fetched), windowBytes));
      return;
    }
  } else {
    // Parts cannot be compared with the hash of the whole.
    await transfer(job, whole);
  }
  await whole.finish();
  const verified = await verifyHash(context, whole);
  report("memory", reason);
  arrival.finish(readAhead(intakeSource(whole), windowBytes), whole);
  void offerFile(context, intakeSource(whole), verified);
}

/** A file that has arrived, from where the intake keeps it. */
export function intakeSource(intake: Intake): ModelSource {
  return { size: intake.position, read: (offset, length) => intake.read(offset, length) };
}
