import type Docker from 'dockerode';
import withSession from 'dockerode/lib/session.js';

/** Options that make a build a BuildKit one, to be closed after it however it ended. */
export interface BuildSession extends AsyncDisposable {
  options: { version: number; session: string };
}

/**
 * Opens the session through which BuildKit asks for registry credentials (none yet). dockerode's own `version: '2'` opens
 * one, too, but closes it only after a build that ended well: `version` as a number leaves that to us.
 */
export function openSession(engine: Docker): Promise<BuildSession> {
  return new Promise((resolve, reject) => {
    withSession(engine, undefined, (error, session, done) => {
      if (error || session === null) return reject(error ?? new Error('The engine opened no session.'));
      resolve({ options: { version: 2, session }, [Symbol.asyncDispose]: async () => done() });
    });
  });
}
