import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { Server, ServerCredentials, status, type handleUnaryCall, type ServiceDefinition } from '@grpc/grpc-js';
import { fromJSON } from '@grpc/proto-loader';
import type Docker from 'dockerode';
import type { BuildSpec } from '#runtimes/runtime.ts';

/** Options that turn a build into a BuildKit one. Close it after the build, whatever the outcome. */
export interface BuildSession extends AsyncDisposable {
  options: { version: number; session: string };
}

/** Parts of BuildKit's interface of sessions: it asks the client of a build whether it is there, for credentials and for secrets. */
const PROTOCOL = {
  nested: {
    'grpc.health.v1': {
      nested: {
        Health: { methods: { Check: { requestType: 'HealthCheckRequest', responseType: 'HealthCheckResponse' } } },
        HealthCheckRequest: { fields: { service: { type: 'string', id: 1 } } },
        HealthCheckResponse: { fields: { status: { type: 'int32', id: 1 } } },
      },
    },
    'moby.filesync.v1': {
      nested: {
        Auth: { methods: { Credentials: { requestType: 'CredentialsRequest', responseType: 'CredentialsResponse' } } },
        CredentialsRequest: { fields: { Host: { type: 'string', id: 1 } } },
        CredentialsResponse: { fields: { Username: { type: 'string', id: 1 }, Secret: { type: 'string', id: 2 } } },
      },
    },
    'moby.buildkit.secrets.v1': {
      nested: {
        Secrets: { methods: { GetSecret: { requestType: 'GetSecretRequest', responseType: 'GetSecretResponse' } } },
        GetSecretRequest: { fields: { ID: { type: 'string', id: 1 } } },
        GetSecretResponse: { fields: { data: { type: 'bytes', id: 1 } } },
      },
    },
  },
};

/** Status SERVING of the protocol of health. */
const SERVING = 1;

/** Connection of docker-modem that becomes one of another protocol. Its types leave it out. */
interface Dialler {
  dial(options: object, answered: (error: Error | null, socket?: Duplex) => void): void;
}

/**
 * Opens the session through which BuildKit asks for what a build may have: no credentials of registries, and the secrets that its Dockerfile
 * mounts. They are neither in the request of the build, nor in its cache, nor in the image.
 */
export async function openSession(
  engine: Docker,
  { secretMounts }: Pick<BuildSpec, 'secretMounts'>,
  signal: AbortSignal,
): Promise<BuildSession> {
  const session = randomUUID();
  const socket = await dial(engine, session, signal);
  const server = new Server();
  const services = fromJSON(PROTOCOL as Parameters<typeof fromJSON>[0]) as unknown as Record<string, ServiceDefinition>;
  const credentials: handleUnaryCall<object, object> = (_call, answer) => answer(null, {});
  const secret: handleUnaryCall<{ ID: string }, { data: Buffer }> = ({ request: { ID: id } }, answer) => {
    if (Object.hasOwn(secretMounts, id)) return answer(null, { data: Buffer.from(secretMounts[id]!) });
    answer({ code: status.NOT_FOUND, details: `The service has no variable ${id}.` });
  };
  // BuildKit gives up a session that does not answer this, within seconds.
  const health: handleUnaryCall<object, { status: number }> = (_call, answer) => answer(null, { status: SERVING });
  server.addService(services['grpc.health.v1.Health']!, { Check: health });
  server.addService(services['moby.filesync.v1.Auth']!, { Credentials: credentials });
  server.addService(services['moby.buildkit.secrets.v1.Secrets']!, { GetSecret: secret });
  server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(socket);
  return {
    options: { version: 2, session },
    [Symbol.asyncDispose]: async () => {
      server.forceShutdown();
      socket.end();
    },
  };
}

function dial(engine: Docker, session: string, abortSignal: AbortSignal): Promise<Duplex> {
  const options = {
    method: 'POST',
    path: '/session',
    hijack: true,
    headers: { Upgrade: 'h2c', 'X-Docker-Expose-Session-Uuid': session, 'X-Docker-Expose-Session-Name': 'quarterdeck' },
    statusCodes: { 200: true, 500: 'server error' },
    abortSignal,
  };
  return new Promise((resolve, reject) => {
    (engine.modem as Dialler).dial(options, (error, socket) => {
      if (error || !socket) reject(error ?? new Error('The engine opened no session.'));
      else resolve(socket);
    });
  });
}
