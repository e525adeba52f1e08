import type { DeployableKind, PlannedService } from '#deployments/index.ts';

/** How an agentic workflow is deployed: not at all. Its runs are their own deployments. */
export const workflowDeployment: DeployableKind = {
  source: () => null,
  plan: (service, _action): PlannedService => ({
    serviceId: service.serviceId,
    name: service.name,
    kind: service.kind,
    steps: ['DEPLOYMENT'],
    reason: 'it runs when its webhook is called: there is nothing to apply',
    buildKey: null,
    image: null,
    rollout: 'NONE',
  }),
};
