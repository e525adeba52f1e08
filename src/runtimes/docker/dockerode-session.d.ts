/** Not in the types of dockerode: its client of BuildKit's sessions. */
declare module 'dockerode/lib/session.js' {
  import type Docker from 'dockerode';
  export default function withSession(
    docker: Docker,
    auth: { username: string; password: string } | undefined,
    handler: (error: Error | null, sessionId: string | null, done: () => void) => void,
  ): void;
}
