//! The part of React that the hooks use. The app supplies React; the package's own types name none of its types.

declare module "react" {
  export function useState<State>(
    initial: State | (() => State),
  ): [State, (next: State | ((previous: State) => State)) => void];
  export function useEffect(
    effect: () => undefined | (() => void),
    inputs: readonly unknown[],
  ): void;
  export function useRef<Value>(initial: Value): { current: Value };
  export function useCallback<Callback>(callback: Callback, inputs: readonly unknown[]): Callback;
}
