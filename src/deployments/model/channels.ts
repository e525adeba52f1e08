/** Channels on which the engine is woken (src/platform/database/notify.ts). A message is a nudge: its listeners also poll. */
/** The payload says whose turn it is (`wakeOf`); every worker looks where it is empty. */
export const DEPLOYMENTS = 'quarterdeck_deployments';
/** The payload is the deployment's id. */
export const CANCELLATIONS = 'quarterdeck_cancellations';
/** A deployment has moved; the payload is its id. */
export const PROGRESS = 'quarterdeck_progress';

/** A deployment that can be begun: its ticket chooses one worker among all, unless its cluster lives on a machine. */
export interface Wake {
  ticket: number;
  nodeId: string | null;
}

/** Payload that tells of a new deployment. */
export const wakeOf = (deploymentId: string, nodeId: string | null): string =>
  `${Number.parseInt(deploymentId.slice(-8), 16)} ${nodeId ?? ''}`;

/** Undefined for messages of earlier releases and after a new connection. */
export function readWake(payload: string): Wake | undefined {
  const [ticket = '', nodeId = ''] = payload.split(' ');
  return /^\d+$/.test(ticket) ? { ticket: Number(ticket), nodeId: nodeId || null } : undefined;
}
