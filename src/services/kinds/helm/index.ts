import { selectedCommit, selectedId, selectedText } from '#services/service/selection.ts';
import { Type } from '#platform/http/schema.ts';
import type { Kind } from '#services/kind.ts';
import { chooseHelm, helmDeployment } from '#services/kinds/helm/deploy.ts';
import {
  Helm,
  HelmDeployQuery,
  HelmDeployRequest,
  HelmEditRequest,
  HelmRequest,
  type HelmInput,
} from '#services/kinds/helm/schema.ts';
import { toHelmSpec, toHelmView, withHelmSources, type HelmSpec } from '#services/kinds/helm/spec.ts';
import { helmRoutes } from '#services/kinds/helm/routes.ts';
import { helmTerraform } from '#services/kinds/helm/terraform.ts';

/** Chart of a Helm repository or of a git repository. */
export const helm: Kind<HelmSpec, HelmInput & { name: string }> = {
  kind: 'HELM',
  path: 'helm',
  tag: 'Helm',
  listTag: 'Helms',
  defaultStage: 'CONTAINER DEFAULT',
  schemas: { create: HelmRequest, edit: HelmEditRequest, answer: Helm },
  toSpec: toHelmSpec,
  toView: toHelmView,
  deployment: helmDeployment,
  requires: () => ['helm'],
  details: ({ source: { repository } }) =>
    repository ? { repository: { chart_name: repository.chart_name, chart_version: repository.chart_version } } : {},
  deploy: {
    body: HelmDeployRequest,
    query: HelmDeployQuery,
    group: 'helms',
    entry: Type.Object({
      id: selectedId,
      chart_version: selectedText,
      git_commit_id: selectedCommit,
      values_override_git_commit_id: selectedCommit,
    }),
    choose: chooseHelm,
  },
  terraform: helmTerraform,
  routes: (needs) => helmRoutes(needs),
  capabilities: {
    ports: (spec) => spec.ports,
    gitSource: (spec, of) =>
      of === 'values' ? (spec.values_override.file?.git?.git_repository ?? null) : spec.git_repository,
    mapGitSources: withHelmSources,
    customDomains: { one: 'get' },
    autoDeploy: ({ auto_deploy }) => (auto_deploy ? 'DEPLOY' : null),
    deploymentRestrictions: {},
    advancedSettings: {},
    restart: false,
    links: {},
    commits: { of: ['chart', 'values'] },
    clone: {},
  },
};
