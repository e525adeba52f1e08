const { get: isAborted } = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted') as { get(): boolean };

/** Calls `look` whenever the signal is read, before the answer is given. What the signal throws is an Error, also where its reason is a word. */
function lookWhenRead(signal: AbortSignal, look: () => void): void {
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
        if (isAborted.call(signal)) throw toError(signal.reason);
      },
    },
  });
}

const toError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('It was cancelled.', { cause: reason });

/**
 * Returns an AbortController for work that only the holder of a lease may do. Its signal is also aborted, with the reason `lost`, when it is read
 * after the lease has ended: a process that was stopped and goes on may read it before any timer fires, and what it does outside then is what must
 * not happen (docs/decisions/0013-a-lease-is-looked-at.md). A thread or process that watches would be woken no sooner than the work itself.
 */
export function leaseController(isOver: () => boolean): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  lookWhenRead(signal, () => {
    if (!isAborted.call(signal) && isOver()) controller.abort('lost');
  });
  return controller;
}

/**
 * Returns a signal that is aborted with the first of the signals. In contrast to `AbortSignal.any`, reading it reads them, so that the end of a
 * lease behind one of them is noticed at that moment.
 */
export function anySignal(signals: AbortSignal[]): AbortSignal {
  const signal = AbortSignal.any(signals);
  lookWhenRead(signal, () => {
    // A source that finds its lease over aborts, and this signal with it.
    if (!isAborted.call(signal)) for (const source of signals) if (source.aborted) return;
  });
  return signal;
}
