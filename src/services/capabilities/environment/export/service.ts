import { shortId } from '#kernel/ids.ts';
import { inSnapshot, type Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { FileAnswer } from '#platform/http/file.ts';
import { listStages } from '#resources/deployment-stage/index.ts';
import { DEFAULT_STAGES, placeOf, type EnvironmentTarget } from '#resources/environment/index.ts';
import { zip, type ArchiveFile } from '#services/capabilities/environment/export/archive.ts';
import { listDomainsByServices } from '#services/capabilities/service/custom-domains/index.ts';
import { listRestrictionsByServices } from '#services/capabilities/service/deployment-restrictions/index.ts';
import { secretBlocks, variableAttributes } from '#services/capabilities/environment/export/variables.ts';
import { listWrittenVariables, type WrittenVariable } from '#services/capabilities/variables/index.ts';
import type { Kind } from '#services/kind.ts';
import { comment, Expression, jsonencode, writeHcl, type HclBlock, type HclValue } from '#services/hcl/hcl.ts';
import { listOf } from '#services/hcl/long-running.ts';
import { iconOf } from '#services/service/service.ts';
import { listAllServicesByEnvironment, type ServiceRow } from '#services/service/queries.ts';

/** Service that the Terraform provider has a resource for. */
interface Exported {
  row: ServiceRow;
  kind: Kind;
  /** Name of the resource, which references to it contain. */
  label: string;
}

/** Rows that an export is rendered from. */
interface Contents {
  environment: EnvironmentTarget;
  label: string;
  services: Exported[];
  left: ServiceRow[];
  stages: { id: string; name: string; description: string | null }[];
  domains: Awaited<ReturnType<typeof listDomainsByServices>>;
  restrictions: Awaited<ReturnType<typeof listRestrictionsByServices>>;
  variables: Map<string, WrittenVariable[]>;
  withSecrets: boolean;
}

/**
 * Returns a ZIP archive of Terraform files for the provider of this API: the environment with its stages, services and own variables. The
 * files contain no values of secrets: required secrets become Terraform variables, which are supplied when the files are applied.
 */
export async function exportEnvironment(
  context: Context,
  kinds: Kind[],
  environment: EnvironmentTarget,
  withSecrets: boolean,
): Promise<FileAnswer> {
  const contents = await inSnapshot(context, (inside) => read(inside, kinds, environment, withSecrets));
  const files = [mainFile(contents), variablesFile(contents), environmentFile(contents)];
  for (const service of contents.services) files.push(serviceFile(context, contents, service));
  await audit(context, {
    organizationId: environment.organizationId,
    type: 'EXPORT',
    ...placeOf(environment),
    after: { format: 'terraform', export_secrets: withSecrets },
  });
  return new FileAnswer(`terraform-manifest-${environment.id}.zip`, await zip(files));
}

async function read(
  context: Context,
  kinds: Kind[],
  environment: EnvironmentTarget,
  withSecrets: boolean,
): Promise<Contents> {
  const { db } = context;
  const rows = await listAllServicesByEnvironment(db, environment, environment.id).execute();
  const byKind = new Map(kinds.filter((kind) => kind.terraform).map((kind) => [kind.kind as string, kind]));
  const present = rows.filter((row) => !row.deleting);
  const services = present
    .filter((row) => byKind.has(row.kind))
    .map((row) => ({ row, kind: byKind.get(row.kind)!, label: labelOf(byKind.get(row.kind)!.path, row.id) }));
  const ids = services.map(({ row }) => row.id);
  const variables = await listWrittenVariables(context, environment, ids);
  return {
    environment,
    label: labelOf('environment', environment.id),
    services,
    left: present.filter((row) => !byKind.has(row.kind)),
    stages: (await listStages(db, environment, environment.id)).filter(({ name }) => !DEFAULT_STAGES.includes(name)),
    domains: await listDomainsByServices(db, environment, ids),
    restrictions: await listRestrictionsByServices(db, environment, ids),
    variables: Map.groupBy(variables, (one) => one.parentId),
    withSecrets,
  };
}

const labelOf = (what: string, id: string): string => `${what}_z${shortId(id)}`;
const reference = (...parts: string[]): Expression => new Expression(parts.join('.'));

function mainFile({ environment, left }: Contents): ArchiveFile {
  const blocks: HclBlock[] = [
    {
      type: 'terraform',
      labels: [],
      attributes: {},
      blocks: [{ type: 'required_providers', labels: [], attributes: { qovery: { source: 'qovery/qovery' } } }],
    },
    { type: 'provider', labels: ['qovery'], attributes: { token: reference('var', 'qovery_access_token') } },
  ];
  const remarks = [
    `Environment ${environment.name} of project ${environment.project_name}.`,
    ...left.map((row) => `Not in it: ${row.name}, as there is no resource for a service of kind ${row.kind}.`),
  ];
  return { name: 'main.tf', content: `${comment(remarks.join('\n'))}\n\n${writeHcl(blocks)}` };
}

function variablesFile({ environment, label, services, variables, withSecrets }: Contents): ArchiveFile {
  const type = new Expression('string');
  const given = (name: string, description: string, value: string): HclBlock => ({
    type: 'variable',
    labels: [name],
    attributes: { type, description, default: value },
  });
  const holders = [{ id: environment.id, label }, ...services.map((one) => ({ id: one.row.id, label: one.label }))];
  const blocks = [
    {
      type: 'variable',
      labels: ['qovery_access_token'],
      attributes: { type, description: 'API token', sensitive: true },
    },
    given('project_id', `Project that the environment is made in: ${environment.project_name}`, environment.projectId),
    given('cluster_id', `Cluster that it runs on: ${environment.cluster_name}`, environment.clusterId),
    ...(withSecrets ? holders.flatMap((holder) => secretBlocks(holder.label, variables.get(holder.id) ?? [])) : []),
  ];
  return { name: 'variables.tf', content: writeHcl(blocks) };
}

function environmentFile({ environment, label, stages, variables, withSecrets }: Contents): ArchiveFile {
  const resource: HclBlock = {
    type: 'resource',
    labels: ['qovery_environment', label],
    attributes: {
      project_id: reference('var', 'project_id'),
      cluster_id: reference('var', 'cluster_id'),
      name: environment.name,
      mode: environment.mode,
      ...variableAttributes(label, variables.get(environment.id) ?? [], withSecrets),
    },
  };
  // The default stages are left out: each new environment already has them.
  const made = stages.map((stage, index): HclBlock => ({
    type: 'resource',
    labels: ['qovery_deployment_stage', labelOf('stage', stage.id)],
    attributes: {
      environment_id: reference('qovery_environment', label, 'id'),
      name: stage.name,
      description: stage.description || undefined,
      is_after: index > 0 ? stageReference(stages[index - 1]!.id) : undefined,
    },
  }));
  return { name: 'environment.tf', content: writeHcl([resource, ...made]) };
}

const stageReference = (id: string): Expression => reference('qovery_deployment_stage', labelOf('stage', id), 'id');

function serviceFile(context: Context, contents: Contents, { row, kind, label }: Exported): ArchiveFile {
  const { resource, attributes } = kind.terraform!;
  const settings = row.advanced_settings as { [key: string]: HclValue };
  const domains = contents.domains.filter((domain) => domain.service_id === row.id);
  const restrictions = contents.restrictions.filter((restriction) => restriction.service_id === row.id);
  const block: HclBlock = {
    type: 'resource',
    labels: [resource, label],
    attributes: {
      environment_id: reference('qovery_environment', contents.label, 'id'),
      name: row.name,
      icon_uri: row.icon_uri === iconOf(context, kind, row.spec) ? undefined : row.icon_uri,
      deployment_stage_id: contents.stages.some(({ id }) => id === row.stage_id)
        ? stageReference(row.stage_id)
        : undefined,
      is_skipped: row.is_skipped || undefined,
      ...attributes(row.spec),
      advanced_settings_json: Object.keys(settings).length > 0 ? jsonencode(settings) : undefined,
      custom_domains: listOf(domains, ({ domain, generate_certificate }) => ({ domain, generate_certificate })),
      deployment_restrictions: listOf(restrictions, ({ mode, type, value }) => ({ mode, type, value })),
      ...variableAttributes(label, contents.variables.get(row.id) ?? [], contents.withSecrets),
    },
  };
  return { name: `${label}.tf`, content: `${comment(row.name)}\n${writeHcl([block])}` };
}
