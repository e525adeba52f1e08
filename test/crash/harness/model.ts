import type { DeploymentAction, State } from '#deployments/model/states.ts';

/** Service in the model. */
export interface ModelService {
  id: string;
  name: string;
  /** Last CPU setting, and the number of edits so far. */
  cpu: number;
  edits: number;
  /** True once a successful delete request covers it. */
  deleting: boolean;
}

/** Successful request, and the configuration that it applies. */
export interface ModelRequest {
  /** Configuration that it applies, by service. */
  taken: Map<string, { cpu: number; edits: number }>;
  rollback: boolean;
}

/** Ended deployment of an environment. Lists hold them in the order of numbers. */
export interface Ended {
  id: string;
  number: number;
  action: DeploymentAction;
  forced: boolean;
  services: EndedService[];
}

interface EndedService {
  id: string;
  state: State;
  /** True once a step of it began. */
  began: boolean;
  /** True once the step began that changes the workload. */
  applied: boolean;
  /** True if a step was cancelled without a message of its worker: a forced cancel cut it off. */
  cut: boolean;
}

/** Expected state of a service once everything is quiet. */
export interface Expected {
  gone: boolean;
  wanted: 'absent' | 'stopped' | 'running';
  /** True if something may have begun without an end: then the running workload may be of it. */
  unsure: boolean;
  /** Null if a forced cancel came at or after the end of its work: only the engine knows which. */
  dirty: boolean | null;
  release: { number: number; cpu: number; edits: number; rollback: boolean } | null;
  /** State after its last request; null without any. */
  state: State | null;
}

/**
 * Replays the ended deployments of an environment in their order and returns the expected state of a service. Follows the rules of
 * docs/contributing/engine.md for facts, and uses none of the engine's code.
 */
export function replay(serviceId: string, deployments: Ended[], requests: Map<string, ModelRequest>): Expected {
  const now: Expected = { gone: false, wanted: 'absent', unsure: false, dirty: false, release: null, state: null };
  for (const deployment of deployments) {
    const part = deployment.services.find((service) => service.id === serviceId);
    if (!part) continue;
    now.state = part.state;
    if (/^(DEPLOYED|STOPPED|RESTARTED|DELETED)$/.test(part.state)) succeed(now, serviceId, deployment, requests);
    else if (part.began) {
      // It was in progress when it was cancelled or failed. Only a forced cancel leaves it so, and the next deployment skips nothing.
      now.unsure = true;
      if (part.applied && deployment.action === 'DEPLOY') now.wanted = 'running';
      if (part.cut) now.dirty = true;
      else if (deployment.forced) now.dirty ||= null;
    }
  }
  return now;
}

function succeed(now: Expected, serviceId: string, deployment: Ended, requests: Map<string, ModelRequest>): void {
  switch (deployment.action) {
    case 'DEPLOY': {
      const request = requests.get(deployment.id);
      const taken = request?.taken.get(serviceId);
      if (!request || !taken) throw new Error(`The model knows no request ${deployment.id} that covers ${serviceId}.`);
      now.release = { number: deployment.number, ...taken, rollback: request.rollback };
      now.wanted = 'running';
      break;
    }
    case 'STOP':
      // A stop of a service of which nothing was ever applied changes nothing.
      if (now.wanted !== 'absent') now.wanted = 'stopped';
      break;
    case 'RESTART':
      now.wanted = 'running';
      break;
    case 'UNINSTALL':
      now.wanted = 'absent';
      now.release = null;
      break;
    case 'DELETE':
      now.gone = true;
  }
  now.unsure = false;
  now.dirty = false;
}
