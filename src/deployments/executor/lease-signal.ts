/**
 * An AbortController for work that only the holder of a lease may do. Its signal is also aborted, with the reason `lost`, as soon as somebody
 * looks at it after the lease was over: a process that was stopped and goes on may look before any timer of ours runs, and what it does outside
 * then is what must not happen (engine.md, *The queue*). A thread or process that watches would be woken no sooner than the work itself.
 */
export function leaseController(isOver: () => boolean): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  const look = () => {
    if (!isAborted.call(signal) && isOver()) controller.abort('lost');
  };
  Object.defineProperties(signal, {
    aborted: {
      get: () => {
        look();
        return isAborted.call(signal) as boolean;
      },
    },
    throwIfAborted: {
      value: () => {
        look();
        throwIfAborted.call(signal);
      },
    },
  });
  return controller;
}

const { get: isAborted } = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted') as { get(): boolean };
const { throwIfAborted } = AbortSignal.prototype;
