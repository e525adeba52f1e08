import { selectedText } from '#services/service/selection.ts';
import { Type, Uuid } from '#platform/http/schema.ts';
import type { Kind } from '#services/kind.ts';
import { containerDeployment } from '#services/kinds/container/deploy.ts';
import { containerRoutes } from '#services/kinds/container/routes.ts';
import {
  Container,
  ContainerDeployRequest,
  ContainerEditRequest,
  ContainerRequest,
  type ContainerInput,
} from '#services/kinds/container/schema.ts';
import { autoscalingNeeds } from '#services/workload/autoscaling.ts';
import { toContainerSpec, toContainerView, type ContainerSpec } from '#services/kinds/container/spec.ts';

/** Service that runs an image of a registry until it is stopped. */
export const container: Kind<ContainerSpec, ContainerInput & { name: string }> = {
  kind: 'CONTAINER',
  path: 'container',
  tag: 'Container',
  listTag: 'Containers',
  defaultStage: 'CONTAINER DEFAULT',
  schemas: { create: ContainerRequest, edit: ContainerEditRequest, answer: Container },
  toSpec: toContainerSpec,
  toView: toContainerView,
  deployment: containerDeployment,
  routes: () => containerRoutes,
  requires: (spec) => ['registry-images', ...autoscalingNeeds(spec)],
  details: ({ image_name, tag, arguments: words, entrypoint }) => ({
    image_name,
    tag,
    arguments: words,
    ...(entrypoint === undefined ? {} : { entrypoint }),
  }),
  deploy: {
    body: ContainerDeployRequest,
    group: 'containers',
    entry: Type.Object({ id: Uuid, image_tag: selectedText }),
    // The tag becomes the configured one (docs/contributing/rules.md 15).
    choose: (spec, { image_tag: tag }: { image_tag?: string }) =>
      tag && tag !== spec.tag ? { spec: { ...spec, tag } } : {},
  },
  capabilities: {
    ports: (spec) => spec.ports,
    image: {
      of: ({ registry_id: registryId, image_name: name, tag }) => ({ registryId, name, tag }),
      withTag: (spec, tag) => ({ ...spec, tag }),
    },
    autoDeploy: ({ auto_deploy }) => (auto_deploy ? 'DEPLOY' : null),
    imagePreview: {},
    customDomains: { one: 'status' },
    advancedSettings: {},
    network: {},
    links: {},
    clone: {},
  },
};
