//! The stream of parts that a language model of the AI SDK gives.

import type { ModelStreamPart, ModelWarning } from "./model_types.js";

/**
 * Parts as a stream, after its start. An error of `parts` is a part, too. `cancel` is called when the reader stops.
 */
export function partStream(
  warnings: ModelWarning[],
  parts: AsyncIterator<ModelStreamPart, void>,
  cancel: () => Promise<void>,
): ReadableStream<ModelStreamPart> {
  return new ReadableStream<ModelStreamPart>({
    start(controller) {
      controller.enqueue({ type: "stream-start", warnings });
    },
    async pull(controller) {
      try {
        const { done, value } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.enqueue({ type: "error", error });
        controller.close();
      }
    },
    cancel,
  });
}
