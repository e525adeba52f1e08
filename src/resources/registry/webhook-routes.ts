import { defineRoute, type Route } from '#platform/http/route.ts';
import { DateTime, Merge, named, Nullable, Type, Uuid } from '#platform/http/schema.ts';
import { registryTarget } from '#resources/registry/target.ts';
import { createWebhook, deleteWebhook, getWebhook } from '#resources/registry/webhook.ts';

const tag = 'Container Registries';
const path = '/organization/{organizationId}/containerRegistry/{containerRegistryId}/webhook';

const View = Type.Object({
  id: Uuid,
  url: Type.String({ description: 'Address for registries that send the secret in a header, or sign with it.' }),
  created_at: DateTime,
  called_at: Nullable(
    Type.String({
      format: 'date-time',
      description: 'Last call that knew the secret, to the minute; null before the first one.',
    }),
  ),
});
const ContainerRegistryWebhook = named('ContainerRegistryWebhook', View);
const ContainerRegistryWebhookCreated = named(
  'ContainerRegistryWebhookCreated',
  Merge(
    View,
    Type.Object({
      secret: Type.String({ description: 'Shown in this answer only.' }),
      url_with_secret: Type.String({
        description: 'Address for registries that can send no header, such as Docker Hub. It is a secret, too.',
      }),
    }),
  ),
);

/** The address that a registry calls when an image was pushed. */
export const registryWebhookRoutes: Route[] = [
  defineRoute({
    id: 'createContainerRegistryWebhook',
    method: 'POST',
    path,
    tag,
    summary: 'Make the webhook that a container registry calls after a push',
    description:
      'Answers an address and a secret for the settings of the registry. The secret is shown in this answer only. A webhook that the registry has ends at once: this replaces a secret, too.',
    target: registryTarget,
    action: 'containerRegistry.edit',
    answer: { status: 201, body: ContainerRegistryWebhookCreated },
    handler: (call) => createWebhook(call, call.target),
  }),
  defineRoute({
    id: 'getContainerRegistryWebhook',
    method: 'GET',
    path,
    tag,
    summary: 'Get the webhook of a container registry',
    description: 'Answers its address and the last call, without the secret. 404 if the registry has none.',
    target: registryTarget,
    action: 'containerRegistry.read',
    answer: { status: 200, body: ContainerRegistryWebhook },
    handler: (call) => getWebhook(call, call.target),
  }),
  defineRoute({
    id: 'deleteContainerRegistryWebhook',
    method: 'DELETE',
    path,
    tag,
    summary: 'Delete the webhook of a container registry',
    description: 'Calls to its address are refused from now on. Tags are still looked at again and again.',
    target: registryTarget,
    action: 'containerRegistry.edit',
    answer: { status: 204, body: null },
    handler: (call) => deleteWebhook(call, call.target),
  }),
];
