import { leaseController } from '#kernel/lease-signal.ts';
import type { Lease } from '#platform/work/index.ts';

/**
 * Returns the signal of a call, which is aborted when its lease is lost. In a process that stops, the receiver has `graceMs` to answer: a call
 * that is broken off is made a second time.
 */
export function signalOfCall(lease: Lease, graceMs: number): AbortSignal {
  let endsAt = Infinity;
  const controller = leaseController(() => lease.reason === 'lost' || performance.now() > endsAt);
  lease.signal.addEventListener('abort', () => {
    const ms = lease.reason === 'lost' ? 0 : graceMs;
    endsAt = performance.now() + ms;
    setTimeout(() => controller.abort(), ms).unref();
  });
  return controller.signal;
}
