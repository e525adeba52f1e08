import { Readable } from 'node:stream';
import { badRequest, invalidField } from '#kernel/errors.ts';
import { Type, type Static } from '#platform/http/schema.ts';
import { defineSocket, type Peer, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { deployedOn, toAppError, unsupported } from '#services/capabilities/service/sockets/runtime.ts';
import { serviceOfQuery } from '#services/capabilities/service/sockets/targets.ts';
import { placeOfService } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { ExecRequest } from '#runtimes/runtime.ts';

const Size = Type.Integer({ minimum: 0, maximum: 10_000, description: 'Columns or rows; 0 for both is no terminal.' });

/** Query parameters of every shell. */
const ShellQuery = Type.Object({
  command: Type.Array(Type.String({ maxLength: 8192 }), {
    minItems: 1,
    maxItems: 256,
    description: 'Program and arguments: `command[0]=sh&command[1]=-c&…`. No shell reads them.',
  }),
  tty_width: Type.Optional(Size),
  tty_height: Type.Optional(Size),
  pod_name: Type.Optional(Type.String({ description: 'Instance, as `/service/pods` names it; any without.' })),
  container_name: Type.Optional(Type.String({ description: 'An instance has one container, of its own name.' })),
});
type ShellCall = SocketCall<ServiceTarget, Static<typeof ShellQuery>>;

/** Byte that a client sends in a frame of its own to end its input. */
const END_OF_INPUT = 0x04;

/** Makes the socket of a program that runs in an instance of a service. */
export const shellSocket = (needs: ServiceSocketNeeds): Socket =>
  defineSocket({
    id: 'openServiceShell',
    path: '/shell/exec',
    summary: 'A program in an instance of a service, as its account and in its environment',
    frames: 'binary both ways; a frame of the single byte 0x04 ends the input of a program without a terminal',
    target: serviceOfQuery,
    action: 'service.shell',
    query: ShellQuery,
    input: 'bytes',
    event: ({ target, query }: ShellCall) => ({
      type: 'SHELL',
      ...placeOfService(target),
      // Arguments may hold passwords.
      after: { program: query.command[0], instance: query.pod_name ?? null },
    }),
    open: async (call: ShellCall) => {
      const terminal = terminalOf(call.query);
      const { pod_name: instance, container_name: container } = call.query;
      if (container !== undefined && container !== instance)
        throw invalidField(
          'container_name',
          'must be left out, or be the name that pod_name has: instances have one container',
        );
      const { runtime, handle } = await deployedOn(needs, call.target);
      if (!runtime.exec) throw unsupported(call.target, 'programs cannot be run beside a service');
      return async (peer) => {
        const output = peer.output();
        const request: ExecRequest = {
          command: call.query.command,
          environment: {},
          stdin: terminal ? peer.input() : endingInput(peer),
          stdout: output,
          stderr: output,
          ...(instance === undefined ? {} : { instance }),
          ...(terminal ? { terminal } : {}),
        };
        try {
          const { exitCode } = await runtime.exec!(handle, request, peer.signal);
          return `exit status ${exitCode}`;
        } catch (error) {
          throw toAppError(error);
        }
      };
    },
  });

/** Returns the size of the terminal; undefined without one. Throws 400 if only one side is given. */
function terminalOf({ tty_width: columns = 0, tty_height: rows = 0 }: ShellCall['query']): ExecRequest['terminal'] {
  if (columns === 0 && rows === 0) return undefined;
  if (columns === 0) throw invalidField('tty_width', 'must be more than 0 with a tty_height');
  if (rows === 0) throw invalidField('tty_height', 'must be more than 0 with a tty_width');
  return { columns, rows };
}

/** Returns the client's input up to the frame that ends it. With a terminal the terminal itself interprets that byte. */
function endingInput(peer: Peer): Readable {
  return Readable.from(
    (async function* () {
      for await (const part of peer.input() as AsyncIterable<Buffer>) {
        if (part.length === 1 && part[0] === END_OF_INPUT) return;
        yield part;
      }
    })(),
    { objectMode: false },
  );
}

/** Socket for containers beside an instance, which is refused: no runtime can create them yet. */
export const ephemeralShellSocket: Socket = defineSocket({
  id: 'openEphemeralShell',
  path: '/shell/ephemeral',
  summary: 'Refused with 400: no runtime starts containers beside an instance; `/shell/exec` runs programs in it',
  frames: 'none',
  target: serviceOfQuery,
  action: 'service.shell',
  open: () => {
    throw badRequest('Containers beside an instance are not supported: use /shell/exec, which runs in the instance.');
  },
});
