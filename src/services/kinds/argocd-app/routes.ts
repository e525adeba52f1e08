import { badGateway, notFound } from '#kernel/errors.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { ArgoCdError, findArgoCd } from '#resources/argo-cd/index.ts';
import { clusterTarget } from '#resources/cluster/index.ts';
import { listServicesUsing, toServiceUseView } from '#resources/organization/index.ts';
import type { ShownKind } from '#services/kind.ts';
import { ArgoCdApp, ArgoCdAppManifest, ArgoCdAssociatedServiceList } from '#services/kinds/argocd-app/schema.ts';
import type { ArgoCdAppSpec } from '#services/kinds/argocd-app/spec.ts';
import { progressOf, toArgoCdAppView } from '#services/kinds/argocd-app/view.ts';
import { toServiceView } from '#services/service/service.ts';
import { serviceTarget, type ServiceTarget } from '#services/service/target.ts';

const tag = 'ArgoCD';

/** App of an Argo CD: read from there, never created, changed or deployed through the API (docs/contributing/rules.md 39). */
export const argoCdApp: ShownKind<ArgoCdAppSpec> = {
  kind: 'ARGOCD_APP',
  path: 'argocdApp',
  tag,
  schemas: { answer: ArgoCdApp },
  toView: toArgoCdAppView,
  routes: () => argoCdAppRoutes,
};

const target = serviceTarget('argocdAppId', 'Argo CD app', 'ARGOCD_APP');

const argoCdAppRoutes: Route[] = [
  defineRoute({
    id: 'getArgoCdApp',
    method: 'GET',
    path: '/argocdApp/{argocdAppId}',
    tag,
    summary: 'Get an app of an Argo CD',
    description: 'Answers what was read last from Argo CD: repository, revision, namespace and time.',
    target,
    action: 'service.read',
    answer: { status: 200, body: ArgoCdApp },
    readsOnlyTarget: true,
    handler: (call) => toServiceView(call, argoCdApp, call.target),
  }),
  defineRoute({
    id: 'getArgoCdAppManifest',
    method: 'GET',
    path: '/argocdApp/{argocdAppId}/manifest',
    tag,
    summary: 'Get what belongs to an app, as it should be and as it is: Argo CD is asked for it',
    description: 'Answers the desired and the live state of each object of the app. 502 if Argo CD cannot be reached.',
    target,
    action: 'service.read',
    answer: { status: 200, body: ArgoCdAppManifest },
    errors: [502],
    transaction: false,
    handler: async (call) => ({
      manifest_revision: progressOf(call.target).revision,
      manifest_metadata: { managed_resources: await readResources(call, call.target) },
    }),
  }),
  defineRoute({
    id: 'getArgoCdAssociatedServices',
    method: 'GET',
    path: '/cluster/{clusterId}/argocdApps/associatedServices',
    tag,
    summary: "List the services that were read from a cluster's Argo CD",
    description: 'Answers every app with its environment and project.',
    target: clusterTarget,
    action: 'cluster.read',
    filtersRows: true,
    answer: { status: 200, body: ArgoCdAssociatedServiceList },
    handler: async ({ db, principal, target: cluster }) => {
      const used = { argoCdClusterId: cluster.id };
      const rows = await listServicesUsing(db, principal, cluster.organizationId, used).execute();
      return { results: rows.map(toServiceUseView) };
    },
  }),
];

async function readResources(call: Call<ServiceTarget>, app: ServiceTarget) {
  const spec = app.spec as ArgoCdAppSpec;
  const argoCd = await findArgoCd(call, app, { id: app.argo_cd_id! }, call.signal);
  if (!argoCd) throw notFound('Argo CD app');
  try {
    const { app_name: name, app_namespace: namespace, app_project: project } = spec;
    return await argoCd.listManagedResources({ name, namespace, project });
  } catch (error) {
    if (!(error instanceof ArgoCdError)) throw error;
    // The app was deleted in Argo CD; the next read removes its service.
    if (error.absent) throw notFound('Argo CD app');
    throw badGateway(error.message, error);
  }
}
