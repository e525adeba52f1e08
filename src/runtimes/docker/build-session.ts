import type Docker from 'dockerode';
import withSession from 'dockerode/lib/session.js';

/** Options that turn a build into a BuildKit one. Close it after the build, whatever the outcome. */
export interface BuildSession extends AsyncDisposable {
  options: { version: number; session: string };
}

/**
 * Opens the session through which BuildKit asks for registry credentials (none yet). dockerode's own `version: '2'` also opens one, but
 * closes it only after a successful build; with `version` as a number the caller closes it.
 */
export function openSession(engine: Docker): Promise<BuildSession> {
  return new Promise((resolve, reject) => {
    withSession(engine, undefined, (error, session, done) => {
      if (error || session === null) return reject(error ?? new Error('The engine opened no session.'));
      resolve({ options: { version: 2, session }, [Symbol.asyncDispose]: async () => done() });
    });
  });
}
