import { invalidField, notFound } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type, Uuid } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import * as schema from '#resources/blueprint/schema.ts';

const tag = 'Blueprint Main Calls';
const CATALOGUE = '/organization/{organizationId}/blueprint/catalog';
const SERVICE = `${CATALOGUE}/{provider}/{serviceFamily}/{serviceVersion}`;
const ONE = '/blueprint/{blueprintId}';

/** Catalogue of this release: blueprints are services from repositories of the reference's maker, of which none is part of it. */
const EMPTY = { version: '1', generatedAt: '2026-11-23T00:00:00.000Z', blueprints: [] };

const notThere = (): never => {
  throw notFound('Blueprint');
};

const catalogue: Route[] = [
  defineRoute({
    id: 'getBlueprintCatalog',
    method: 'GET',
    path: CATALOGUE,
    tag,
    summary: 'Get the catalogue of blueprints',
    description:
      'The catalogue of this release is empty. Create a Terraform or Helm service from the repository of a module or chart instead.',
    target: organizationTarget,
    action: 'organization.read',
    answer: { status: 200, body: schema.BlueprintCatalogue },
    handler: () => EMPTY,
  }),
  defineRoute({
    id: 'getBlueprintCatalogServiceReadme',
    method: 'GET',
    path: `${SERVICE}/readme`,
    tag: 'Blueprint Catalog',
    summary: 'Get the readme of a blueprint of the catalogue',
    description: 'Every call is answered with 404 while the catalogue is empty.',
    target: organizationTarget,
    action: 'organization.read',
    answer: { status: 200, body: schema.BlueprintReadme },
    handler: notThere,
  }),
  defineRoute({
    id: 'getBlueprintCatalogServiceManifest',
    method: 'GET',
    path: `${SERVICE}/manifest`,
    tag: 'Blueprint Catalog',
    summary: 'Get the variables and the engine of a blueprint of the catalogue',
    description: 'Every call is answered with 404 while the catalogue is empty.',
    target: organizationTarget,
    action: 'organization.read',
    query: Type.Object({
      environmentId: Type.String({ ...Uuid, description: 'Has no effect while the catalogue is empty.' }),
    }),
    answer: { status: 200, body: schema.BlueprintManifest },
    handler: notThere,
  }),
];

const blueprints: Route[] = [
  defineRoute({
    id: 'createBlueprint',
    method: 'POST',
    path: '/environment/{environmentId}/blueprint',
    tag,
    summary: 'Create a service from a blueprint: refused while the catalogue is empty',
    description: 'Every call is answered with 400 that names `tag`, and nothing is created.',
    target: environmentTarget,
    action: 'service.create',
    query: Type.Object({ deploy: Type.Optional(Type.Boolean({ description: 'Has no effect on the refusal.' })) }),
    body: schema.BlueprintRequest,
    answer: { status: 201, body: schema.Blueprint },
    handler: ({ target }) => {
      throw invalidField(
        'tag',
        `must be a tag of the catalogue, which is empty in this release; POST /environment/${target.id}/terraform or /helm creates a service from a repository`,
      );
    },
  }),
  defineRoute({
    id: 'checkBlueprintUpdate',
    method: 'GET',
    path: `${ONE}/update`,
    tag,
    summary: 'Get what an update of a blueprint would change: there is no blueprint',
    description: 'Every call is answered with 404, because no blueprint can be created.',
    action: 'authenticated',
    answer: { status: 200, body: schema.BlueprintUpdate },
    handler: notThere,
  }),
  defineRoute({
    id: 'previewBlueprintUpdate',
    method: 'POST',
    path: `${ONE}/update/preview`,
    tag,
    summary: 'Plan an update of a blueprint: there is no blueprint',
    description: 'Every call is answered with 404, because no blueprint can be created.',
    action: 'authenticated',
    body: schema.BlueprintUpdateRequest,
    answer: { status: 202, body: schema.BlueprintPreview },
    handler: notThere,
  }),
  defineRoute({
    id: 'deployBlueprint',
    method: 'POST',
    path: `${ONE}/deploy`,
    tag,
    summary: 'Deploy the service of a blueprint: there is no blueprint',
    description: 'Every call is answered with 404, because no blueprint can be created.',
    action: 'authenticated',
    answer: { status: 202, body: schema.BlueprintDeployment },
    handler: notThere,
  }),
  defineRoute({
    id: 'updateBlueprint',
    method: 'PATCH',
    path: ONE,
    tag,
    summary: 'Update a blueprint: there is no blueprint',
    description: 'Every call is answered with 404, because no blueprint can be created.',
    action: 'authenticated',
    body: schema.BlueprintUpdateRequest,
    answer: { status: 200, body: schema.Blueprint },
    handler: notThere,
  }),
];

/** Services that are made from a catalogue (decision 0043). */
export const blueprintRoutes: Route[] = [...catalogue, ...blueprints];
