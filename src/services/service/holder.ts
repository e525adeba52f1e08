import { SERVICE_KINDS, type KindWith, type ServiceKind } from '#kernel/kinds.ts';
import type { Location } from '#platform/access/principal.ts';
import type { Target } from '#platform/http/route.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { projectTarget } from '#resources/project/index.ts';

export { SERVICE_KINDS, type ServiceKind };

/** Scopes that variables can have (docs/contributing/rules.md 29). */
export type VariableScope = 'PROJECT' | 'ENVIRONMENT' | KindWith<'variables'>;

/** Target of a holder. Of the three ids, the ones that are set tell whether it is a project, environment or service. */
export interface HolderTarget extends Location {
  id: string;
  name: string;
  organizationId: string;
  projectId: string;
  environmentId?: string;
  serviceId?: string;
  /** Set while the target is being deleted: only DELETE is accepted (docs/contributing/rules.md 16). */
  deleting: boolean;
}

/** Resource with capabilities: project, environment or a kind of service (docs/contributing/architecture.md, *Service types*). */
export interface Holder {
  /** First segment of its paths: `application`. */
  path: string;
  /** Name of its id in paths: `applicationId`. */
  param: string;
  /** Prefix of its tags: `Application`. */
  tag: string;
  /** Name in operation ids: `Application`. */
  name: string;
  scope: VariableScope;
  target: Target<HolderTarget>;
}

export const projectHolder: Holder = {
  path: 'project',
  param: 'projectId',
  tag: 'Project',
  name: 'Project',
  scope: 'PROJECT',
  target: projectTarget,
};

export const environmentHolder: Holder = {
  path: 'environment',
  param: 'environmentId',
  tag: 'Environment',
  name: 'Environment',
  scope: 'ENVIRONMENT',
  target: environmentTarget,
};
