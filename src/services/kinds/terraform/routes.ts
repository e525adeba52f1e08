import { notFound } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type, Uuid } from '#platform/http/schema.ts';
import { findPlan, listResources } from '#services/kinds/terraform/queries.ts';
import * as schema from '#services/kinds/terraform/schema.ts';
import { KNOWN_VERSIONS, newerFirst, type ProgramFinder } from '#services/kinds/terraform/versions.ts';
import { serviceTarget } from '#services/service/target.ts';

const target = serviceTarget('terraformId', 'Terraform', 'TERRAFORM');

/** Endpoints that only Terraform services have. */
export const terraformRoutes = (programs: ProgramFinder): Route[] => [
  defineRoute({
    id: 'listTerraformVersions',
    method: 'GET',
    path: '/terraform/availableVersion',
    tag: 'Terraform Main Calls',
    summary:
      'List the versions of Terraform and OpenTofu that a service can name: those of this machine and published ones',
    description: 'Answers each version with its engine; the list is the same for every organization.',
    action: 'authenticated',
    answer: { status: 200, body: schema.TerraformVersionList },
    readsOnlyTarget: true,
    handler: async () => ({ results: await listVersions(programs) }),
  }),
  defineRoute({
    id: 'getTerraformResources',
    method: 'GET',
    path: '/terraform/{terraformId}/terraformResources',
    tag: 'Terraform Resources',
    summary: 'List the resources of the state, as the last run left it',
    description: 'Answers type, name and address of each resource, without sensitive values.',
    target,
    action: 'service.read',
    answer: { status: 200, body: schema.TerraformResourceList },
    handler: async (call) => {
      const rows = await listResources(call.db, call.target, call.target.id);
      return { results: rows.map((row) => ({ ...row, extracted_at: row.extracted_at.toISOString() })) };
    },
  }),
  defineRoute({
    id: 'getTerraformPlan',
    method: 'GET',
    path: '/terraform/{terraformId}/plan',
    tag: 'Terraform Resources',
    summary: 'Get the newest plan, or that of one request, as data without sensitive values',
    description: 'Answers which resources would be created, changed, replaced or deleted. 404 until a plan was made.',
    target,
    action: 'service.read',
    query: Type.Object({ deploymentRequestId: Type.Optional(Uuid) }),
    answer: { status: 200, body: schema.TerraformPlan },
    handler: async (call) => {
      const row = await findPlan(call.db, call.target, call.target.id, call.query.deploymentRequestId ?? null);
      if (!row) throw notFound('Plan');
      return {
        deployment_request_id: row.deployment_id,
        created_at: row.created_at.toISOString(),
        applied: row.applied,
        commit_id: row.commit_id,
        plan: row.content,
      };
    },
  }),
];

async function listVersions(programs: ProgramFinder) {
  const all = [...(await programs()).map(({ engine, version }) => ({ engine, version })), ...KNOWN_VERSIONS];
  const once = new Map(all.map((one) => [`${one.engine} ${one.version}`, one]));
  return [...once.values()].toSorted(
    (a, b) => (a.engine === b.engine ? 0 : a.engine === 'TERRAFORM' ? -1 : 1) || newerFirst(a.version, b.version),
  );
}
