// The message field and buttons of the chat apps, the progress of the model's download, and the error of a turn.

export const Controls = ({ load, error, isLoading, stop, again }) => (
  <>
    {load?.phase === "download" && <progress value={load.loadedBytes} max={load.totalBytes} />}
    {error && <p role="alert">{error.message}</p>}
    <input name="text" aria-label="Message" />
    <button type="submit" disabled={isLoading}>
      Send
    </button>
    <button type="button" onClick={stop} disabled={!isLoading}>
      Stop
    </button>
    <button type="button" onClick={again} disabled={isLoading}>
      Again
    </button>
  </>
);
