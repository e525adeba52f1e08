import { addressOfApi } from '#platform/settings/address.ts';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { named, Type } from '#platform/http/schema.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { findExecution } from '#deployments/index.ts';
import { audit } from '#platform/events/audit.ts';
import { environmentTarget, placeOf, type EnvironmentTarget } from '#resources/environment/index.ts';

const ReportRequest = named(
  'BuildUsageReportRequest',
  Type.Object({
    execution_id: Type.String({ minLength: 1, maxLength: 200 }),
    report_expiration_in_seconds: Type.Integer({ minimum: 60, maximum: 7 * 86_400 }),
  }),
);
const Report = named('BuildUsageReport', Type.Object({ report_url: Type.String(), delete_report_url: Type.String() }));

const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

async function createReport(context: Context, environment: EnvironmentTarget, executionId: string, seconds: number) {
  const execution = await findExecution(context.db, environment, environment.id, executionId);
  if (!execution) throw invalidField('execution_id', 'names no execution of this environment');
  const id = newId();
  const secret = randomBytes(24).toString('base64url');
  await context.db
    .insertInto('build_report')
    .values({
      id,
      organization_id: environment.organizationId,
      deployment_id: execution.id,
      secret_hash: hashOf(secret),
      expires_at: sql`now() + make_interval(secs => ${seconds})`,
    })
    .execute();
  await audit(context, {
    organizationId: environment.organizationId,
    type: 'EXPORT',
    ...placeOf(environment),
    after: { execution_id: executionId, report_expiration_in_seconds: seconds },
  });
  const url = `${addressOfApi(context.settings)}/buildUsageReport/${id}/${secret}`;
  return { report_url: url, delete_report_url: `${url}/delete` };
}

/** Finds the report of a link. The secret of the link is the credential, so a wrong secret gives 404. */
async function openReport(context: Context, { reportId, secret }: { reportId: string; secret: string }) {
  const row = await context.db
    .selectFrom('build_report')
    .selectAll()
    .where('id', '=', reportId)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  if (!row || !timingSafeEqual(row.secret_hash, hashOf(secret))) throw notFound('Report');
  return row;
}

async function readReport(context: Context, params: { reportId: string; secret: string }): Promise<string> {
  const report = await openReport(context, params);
  const steps = await context.db
    .selectFrom('deployment_step as step')
    .innerJoin('deployment_service as service', (join) =>
      join
        .onRef('service.deployment_id', '=', 'step.deployment_id')
        .onRef('service.service_id', '=', 'step.service_id'),
    )
    .select(['service.name', 'service.kind', 'step.name as step', 'step.status', 'step.started_at', 'step.ended_at'])
    .where('step.organization_id', '=', report.organization_id)
    .where('step.deployment_id', '=', report.deployment_id)
    .where('step.name', 'in', ['GIT_CLONE', 'BUILD'])
    .orderBy('step.started_at')
    .execute();
  const cell = (text: string) => `"${text.replaceAll('"', '""').replace(/^([=+\-@])/, "'$1")}"`;
  const rows = steps.map((step) =>
    [
      cell(step.name),
      step.kind,
      step.step,
      step.status,
      step.started_at.toISOString(),
      step.ended_at ? Math.round((step.ended_at.getTime() - step.started_at.getTime()) / 1000) : '',
    ].join(','),
  );
  return ['service,kind,step,status,started_at,seconds', ...rows, ''].join('\n');
}

/** Route that returns what a deployment built and how long it took, as a file behind a link that expires. */
export const buildReportRoutes: Route[] = [
  defineRoute({
    id: 'generateDeploymentBuildUsageReport',
    method: 'POST',
    path: '/environment/{environmentId}/deploymentBuildUsageReport',
    tag: 'Environment Deployment History',
    summary: 'Make a report of what a deployment built, behind a link that expires',
    description:
      'Answers two links, one to read the report and one to delete it. Anybody who has them may use them until they expire.',
    target: environmentTarget,
    action: 'environment.read',
    body: ReportRequest,
    answer: { status: 201, body: Report },
    handler: (call) => createReport(call, call.target, call.body.execution_id, call.body.report_expiration_in_seconds),
  }),
  defineRoute({
    id: 'getBuildUsageReport',
    method: 'GET',
    path: '/buildUsageReport/{reportId}/{secret}',
    tag: 'Environment Deployment History',
    summary: 'Read a report of builds: the link is the credential',
    description: 'Answers the report as a file. A wrong or expired link is 404. Takes no credentials.',
    action: 'public',
    answer: { status: 200, body: Type.String(), contentType: 'text/csv; charset=utf-8' },
    handler: (call) => readReport(call, call.params),
  }),
  defineRoute({
    id: 'deleteBuildUsageReport',
    method: 'POST',
    path: '/buildUsageReport/{reportId}/{secret}/delete',
    tag: 'Environment Deployment History',
    summary: 'Delete a report of builds: the link is the credential',
    description: 'Removes the report before it expires. A wrong or expired link is 404. Takes no credentials.',
    action: 'public',
    answer: { status: 204, body: null },
    handler: async (call) => {
      const report = await openReport(call, call.params);
      await call.db
        .deleteFrom('build_report')
        .where('organization_id', '=', report.organization_id)
        .where('id', '=', report.id)
        .execute();
    },
  }),
];

/** Removes reports whose links have expired. */
export const removeExpiredReports = (db: Database) =>
  db
    .deleteFrom('build_report')
    .where('expires_at', '<', sql<Date>`now()`)
    .execute();
