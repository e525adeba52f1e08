import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';
import { shownAnswer } from '#services/service/common-fields.ts';
import { GitRepository } from '#services/sources/git.ts';

/** docs/contributing/rules.md, *Argo CD app* */
export const ArgoCdApp = named(
  'ArgoCdApp',
  Type.Object({
    ...shownAnswer,
    namespace: Type.String({ description: 'Kubernetes namespace that it is deployed to.' }),
    environment_id: Uuid,
    cluster_id: Uuid,
    last_synced_at: Nullable(DateTime),
    manifest_revision: Nullable(Type.String()),
    git_repository: Nullable(GitRepository),
  }),
);

export const ArgoCdAppManifest = named(
  'ArgoCdAppManifest',
  Type.Object({
    manifest_revision: Nullable(Type.String()),
    manifest_metadata: Type.Object({
      managed_resources: Type.Array(
        Type.Object({
          kind: Type.String(),
          name: Type.String(),
          namespace: Type.String(),
          targetState: Type.String({ description: 'JSON of how it should be. Values of secrets are not in it.' }),
          liveState: Type.String({ description: 'JSON of how it is. Values of secrets are not in it.' }),
        }),
      ),
    }),
  }),
);

export const ArgoCdAssociatedServiceList = PlainListOf(
  named(
    'ArgoCdAssociatedService',
    Type.Object({
      project_id: Uuid,
      project_name: Type.String(),
      environment_id: Uuid,
      environment_name: Type.String(),
      service_id: Uuid,
      service_name: Type.String(),
      service_type: OneOf(['ARGOCD_APP']),
    }),
  ),
);
