import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { exportEnvironment } from '#services/capabilities/environment/export/service.ts';
import type { Kind } from '#services/kind.ts';

export const terraformExportRoutes = (kinds: Kind[]): Route[] => [
  defineRoute({
    id: 'exportEnvironmentConfigurationIntoTerraform',
    method: 'GET',
    path: '/environment/{environmentId}/terraformExport',
    tag: 'Environment Export',
    summary: 'Export an environment with its services and variables as files of Terraform, in a ZIP archive',
    description: 'Values of secrets are in none of the files: whoever applies them gives these as variables.',
    target: environmentTarget,
    action: 'environment.read',
    query: Type.Object({
      exportSecrets: Type.Optional(
        Type.Boolean({ default: false, description: 'Secrets too, as variables of Terraform without their values.' }),
      ),
    }),
    answer: {
      status: 200,
      body: Type.Unsafe<Buffer>({ type: 'string', format: 'binary' }),
      contentType: 'application/octet-stream',
    },
    // It records that it was asked for, which a snapshot cannot.
    transaction: false,
    handler: (call) => exportEnvironment(call, kinds, call.target, call.query.exportSecrets ?? false),
  }),
];
