import { Type } from 'typebox';
import { notFound } from '#kernel/errors.ts';
import { executionIdOf, findExecution, listHistoryServices, readDeploymentLog } from '#deployments/index.ts';
import { serialize } from '#platform/http/compile.ts';
import { defineSocket, type Peer, type Socket, type SocketCall } from '#platform/sockets/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { toDeploymentLine } from '#services/capabilities/logs/routes.ts';
import { DeploymentLogLine } from '#services/capabilities/logs/schema.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/sockets/needs.ts';
import { environmentOfQuery } from '#services/capabilities/sockets/targets.ts';

type LogCall = SocketCall<EnvironmentTarget, { version?: string }>;

const Lines = Type.Array(DeploymentLogLine);
/** Lines of one frame. */
const FRAME_LINES = 200;

/** The log of a deployment as it is written. */
export const deploymentLogSocket = ({ streams }: ServiceSocketNeeds): Socket =>
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

/** How far the log of an execution was sent. */
class FollowedLog {
  readonly #call: LogCall;
  #deploymentId: string | undefined;
  #number = 0;
  #sequence = 0;

  constructor(call: LogCall) {
    this.#call = call;
  }

  /** Sends what is new. A deployment that began since follows the rest of the one before. */
  async send(peer: Peer): Promise<void> {
    const { db, target, query } = this.#call;
    const found = await findExecution(db, target, target.id, query.version);
    if (this.#deploymentId !== undefined && this.#deploymentId !== found?.id) await this.#sendRest(peer);
    if (!found) return;
    if (this.#deploymentId !== found.id)
      [this.#deploymentId, this.#number, this.#sequence] = [found.id, found.number, 0];
    await this.#sendRest(peer);
  }

  async #sendRest(peer: Peer): Promise<void> {
    const { db, target } = this.#call;
    const { lines, last } = await readDeploymentLog(db, target, this.#deploymentId!, this.#sequence);
    this.#sequence = last;
    if (lines.length === 0) return;
    const services = await listHistoryServices(db, target, [this.#deploymentId!]);
    const views = lines.map(toDeploymentLine(target, executionIdOf(target.id, this.#number), services));
    for (let at = 0; at < views.length; at += FRAME_LINES)
      await peer.send(serialize(Lines, views.slice(at, at + FRAME_LINES)));
  }
}
