import type { DeploymentAction, State } from '#deployments/model/states.ts';

/** A service as the model has it. */
export interface ModelService {
  id: string;
  name: string;
  /** What people have set last, and how often they have set something. */
  cpu: number;
  edits: number;
  /** An answered delete covers it. */
  deleting: boolean;
}

/** A request as it was answered: what of the configuration it takes. */
export interface ModelRequest {
  /** The configuration that it applies, by service. */
  taken: Map<string, { cpu: number; edits: number }>;
  rollback: boolean;
}

/** One deployment of an environment as it ended, in the order of numbers. */
export interface Ended {
  id: string;
  number: number;
  action: DeploymentAction;
  forced: boolean;
  services: { id: string; state: State; began: boolean }[];
}

/** What is to be found of a service once everything is quiet. */
export interface Expected {
  gone: boolean;
  wanted: 'absent' | 'stopped' | 'running';
  /** Whether something may have been begun that did not come to its end: then what runs may be of it, and wanted may say so. */
  unsure: boolean;
  dirty: boolean;
  release: { number: number; cpu: number; edits: number; rollback: boolean } | null;
  /** Of its last request, null where there was none. */
  state: State | null;
}

/**
 * The rules of docs/contributing/engine.md for facts, in small: goes through the deployments of an environment in their order and answers what they leave
 * of a service. Nothing of the engine's own code is in it.
 */
export function replay(serviceId: string, deployments: Ended[], requests: Map<string, ModelRequest>): Expected {
  const now: Expected = { gone: false, wanted: 'absent', unsure: false, dirty: false, release: null, state: null };
  for (const deployment of deployments) {
    const part = deployment.services.find((service) => service.id === serviceId);
    if (!part) continue;
    now.state = part.state;
    if (/^(DEPLOYED|STOPPED|RESTARTED|DELETED)$/.test(part.state)) succeed(now, serviceId, deployment, requests);
    else if (part.began) {
      // It was at work when it was cancelled or failed. Only a forced cancel leaves it at that, and the next one skips nothing.
      now.unsure = true;
      if (deployment.forced) now.dirty = true;
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
      // Stopping what was never deployed changes nothing.
      if (now.wanted !== 'absent' || now.unsure) now.wanted = now.release ? 'stopped' : now.wanted;
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
