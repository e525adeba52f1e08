import { Type } from 'typebox';
import { notFound } from '#kernel/errors.ts';
import { executionIdOf, findExecution, listHistoryServices, readDeploymentLog } from '#deployments/index.ts';
import { inSnapshot } from '#platform/context.ts';
import { serialize } from '#platform/http/compile.ts';
import { defineSocket, type Peer, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { toDeploymentLine } from '#services/capabilities/environment/logs/list.ts';
import { DeploymentLogLine } from '#services/capabilities/environment/logs/schema.ts';
import { environmentOfQuery, type EnvironmentSocketNeeds } from '#services/capabilities/environment/sockets/needs.ts';

type LogCall = SocketCall<EnvironmentTarget, { version?: string }>;

const Lines = Type.Array(DeploymentLogLine);
/** Lines of one frame. */
const FRAME_LINES = 200;

/** Makes the socket that sends the log of a deployment while it is written. */
export const deploymentLogSocket = ({ streams }: EnvironmentSocketNeeds): Socket =>
  defineSocket({
    id: 'followDeploymentLogs',
    path: '/deployment/logs',
    summary:
      'Log of the last deployment of an environment and of those that follow, or of the one that `version` names',
    frames: 'text, each a list of `EnvironmentLogs`',
    target: environmentOfQuery,
    action: 'environment.read',
    query: Type.Object({
      version: Type.Optional(Type.String({ description: 'Execution id; the last execution without.' })),
    }),
    open: async (call: LogCall) => {
      const { db, target, query } = call;
      const log = new FollowedLog(call);
      if (query.version !== undefined && !(await findExecution(db, target, target.id, query.version)))
        throw notFound('Execution');
      return async (peer) => {
        const filter = {
          organizationId: target.organizationId,
          environmentId: target.id,
          types: ['deployment', 'log'] as const,
        };
        let begun = false;
        for await (const items of streams.open(filter, undefined, () => true, peer.signal)) {
          if (begun && !items.some(({ row, missing }) => row || missing)) continue;
          begun = true;
          await log.send(peer);
        }
      };
    },
  });

/** Last line of an execution's log that was sent. */
interface Position {
  deploymentId: string;
  number: number;
  sequence: number;
}

/** Log of an environment's deployments, with the position up to which it was sent. */
class FollowedLog {
  readonly #call: LogCall;
  #position: Position | undefined;

  constructor(call: LogCall) {
    this.#call = call;
  }

  /** Sends the new lines. A deployment that began meanwhile follows the rest of the one before. */
  async send(peer: Peer): Promise<void> {
    for (let hasMore = true; hasMore;) {
      const part = await inSnapshot(this.#call, (call) => readFrom(call, this.#position));
      const { lines } = part;
      this.#position = part.position;
      hasMore = part.hasMore;
      for (let at = 0; at < lines.length; at += FRAME_LINES)
        await peer.send(serialize(Lines, lines.slice(at, at + FRAME_LINES)));
    }
  }
}

/** Reads the next part after a position, and the position of its end. */
async function readFrom(call: LogCall, from: Position | undefined) {
  const { db, target, query } = call;
  const found = await findExecution(db, target, target.id, query.version);
  const isLater = found !== undefined && found.id !== from?.deploymentId;
  const next = isLater ? { deploymentId: found.id, number: found.number, sequence: 0 } : undefined;
  const rest = from && (await readRest(call, from));
  if (!next || rest?.hasMore) return rest ?? { lines: [], position: undefined, hasMore: false };
  const later = await readRest(call, next);
  return { ...later, lines: [...(rest?.lines ?? []), ...later.lines] };
}

async function readRest({ db, target }: LogCall, position: Position) {
  const { deploymentId, number, sequence } = position;
  const { lines, last, hasMore } = await readDeploymentLog(db, target, deploymentId, sequence);
  const services = lines.length === 0 ? [] : await listHistoryServices(db, target, [deploymentId]);
  return {
    lines: lines.map(toDeploymentLine(target, executionIdOf(target.id, number), services)),
    position: { ...position, sequence: last },
    hasMore,
  };
}
