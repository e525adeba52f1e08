import { selectedCommit } from '#services/service/selection.ts';
import { Type, Uuid } from '#platform/http/schema.ts';
import { applicationDeployment } from '#services/kinds/application/deploy.ts';
import type { Kind } from '#services/kind.ts';
import {
  Application,
  ApplicationDeployRequest,
  ApplicationEditRequest,
  ApplicationRequest,
  type ApplicationInput,
} from '#services/kinds/application/schema.ts';
import { applicationTerraform } from '#services/kinds/application/terraform.ts';
import { autoscalingNeeds } from '#services/workload/autoscaling.ts';
import { toApplicationSpec, toApplicationView, type ApplicationSpec } from '#services/kinds/application/spec.ts';

/** Service that is built from a git repository and runs until it is stopped. */
export const application: Kind<ApplicationSpec, ApplicationInput & { name: string }> = {
  kind: 'APPLICATION',
  path: 'application',
  tag: 'Application',
  listTag: 'Applications',
  defaultStage: 'APPLICATION DEFAULT',
  schemas: { create: ApplicationRequest, edit: ApplicationEditRequest, answer: Application },
  toSpec: toApplicationSpec,
  toView: toApplicationView,
  deployment: applicationDeployment,
  requires: (spec) => ['builds', ...autoscalingNeeds(spec)],
  deploy: {
    body: ApplicationDeployRequest,
    group: 'applications',
    entry: Type.Object({ application_id: Uuid, git_commit_id: selectedCommit }),
    choose: (_spec, { git_commit_id }: { git_commit_id?: string }) => ({ commitId: git_commit_id }),
  },
  terraform: applicationTerraform,
  capabilities: {
    historyV1: 'outcomes',
    ports: (spec) => spec.ports,
    gitSource: (spec) => spec.git_repository,
    customDomains: { one: 'status' },
    autoDeploy: ({ auto_deploy }) => (auto_deploy ? 'DEPLOY' : null),
    deploymentRestrictions: {},
    advancedSettings: {},
    network: {},
    links: {},
    commits: { contributors: true },
    folder: {},
    clone: {},
  },
};
