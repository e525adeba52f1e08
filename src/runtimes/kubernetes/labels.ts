import type { EnvironmentIdentity, WorkloadIdentity } from '#runtimes/runtime.ts';

/** Labels of the objects that we make. Objects without the installation's label are never touched. */
export const LABEL = {
  installation: 'quarterdeck.installation',
  organization: 'quarterdeck.organization',
  project: 'quarterdeck.project',
  environment: 'quarterdeck.environment',
  service: 'quarterdeck.service',
  generation: 'quarterdeck.generation',
  /** Name of an execution, on everything that is made for it. */
  task: 'quarterdeck.task',
} as const;

/** Annotations of the objects that we make. */
export const ANNOTATION = {
  /** Human name of the service. */
  name: 'quarterdeck.name',
  /** Generation of the deployment that asked for a restart. */
  asked: 'quarterdeck.restarted-for',
  /** Reason for which we ended an execution (`EndedBy` in `task-objects.ts`). */
  endedBy: 'quarterdeck.ended-by',
} as const;

/** Name under which we own fields of objects. */
export const FIELD_MANAGER = 'quarterdeck';
/** Name under which the number of pods is handed over to an autoscaler. */
export const SCALING_MANAGER = 'quarterdeck-scaling';

/** Namespace of an environment. */
export const namespaceOf = ({ environmentId }: Pick<EnvironmentIdentity, 'environmentId'>): string =>
  `qd-${environmentId}`;

/** Returns whether a namespace is that of an environment, of any installation. */
export const isOfEnvironment = (namespace: string): boolean => /^qd-[0-9a-f-]{36}$/.test(namespace);

export function identityLabels(identity: WorkloadIdentity): Record<string, string> {
  return {
    'app.kubernetes.io/managed-by': 'quarterdeck',
    [LABEL.installation]: identity.installation,
    [LABEL.organization]: identity.organizationId,
    [LABEL.project]: identity.projectId,
    [LABEL.environment]: identity.environmentId,
    [LABEL.service]: identity.serviceId,
  };
}

/** Returns a selector of everything of a service. */
export const ofService = ({ installation, serviceId }: Pick<WorkloadIdentity, 'installation' | 'serviceId'>): string =>
  `${LABEL.installation}=${installation},${LABEL.service}=${serviceId}`;
