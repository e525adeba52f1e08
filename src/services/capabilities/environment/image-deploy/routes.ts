import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { deployFollowers, previewFollowers } from '#services/capabilities/environment/image-deploy/service.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';
import type { Kind } from '#services/kind.ts';
import { ImageName, ImageTag } from '#services/images/image-name.ts';

const NewImageRequest = named(
  'NewImageRequest',
  Type.Object({ image_name: Type.Optional(ImageName), tag: Type.Optional(ImageTag) }),
);

/** Makes the routes that a registry calls when it has a new version of an image. Only kinds that run images have them. */
export function imageDeployRoutes(kind: Kind, kinds: Kind[]): Route[] {
  const { image, imagePreview } = kind.capabilities ?? {};
  if (!image) return [];
  const shared = {
    method: 'POST',
    tag: kind.listTag,
    target: organizationTarget,
    action: 'organization.deploy',
    body: NewImageRequest,
    answer: { status: 200, body: Status },
  } as const;
  const deploy = defineRoute({
    ...shared,
    id: `autoDeploy${kind.tag}Environments`,
    path: `/organization/{organizationId}/${kind.path}/deploy`,
    summary: `Deploy a tag wherever services of kind ${kind.path} run the image and follow it`,
    description: 'Those with auto_deploy whose image has that name. The tag becomes the configured one.',
    errors: [409],
    handler: (call) => deployFollowers(call, kind, call.body),
  });
  if (!imagePreview) return [deploy];
  return [
    deploy,
    defineRoute({
      ...shared,
      id: `preview${kind.tag}Environments`,
      path: `/organization/{organizationId}/${kind.path}/preview`,
      summary: `Make previews of the environments whose services of kind ${kind.path} run the image`,
      description:
        'Those with auto_preview: each environment is cloned, with the tag, and deployed. Like every clone it takes the permission to edit services there; the preview of a PRODUCTION environment is PRODUCTION, too.',
      errors: [409],
      handler: (call) => previewFollowers(call, kinds, kind, call.body),
    }),
  ];
}
