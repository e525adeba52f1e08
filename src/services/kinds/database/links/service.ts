import { badRequest, conflict, notFound } from '#kernel/errors.ts';
import { builtInId } from '#deployments/model/built-in-variables.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import type { Call } from '#platform/http/route.ts';
import { aliasVariable, placeOf, removeVariable } from '#services/capabilities/variables/index.ts';
import { deleteLink, insertLink } from '#services/kinds/database/links/queries.ts';
import { placeOfService, refuseDeleting } from '#services/service/service.ts';
import { serviceTarget, type ServiceTarget } from '#services/service/target.ts';

/** Default key of the alias that a link creates. */
export const DEFAULT_KEY = 'DATABASE_URL';

const applicationTarget = serviceTarget('targetApplicationId', 'Application', 'APPLICATION');

/** Finds and locks the application of a path. Throws 404, or 403 unless the caller may edit it. */
async function findApplication(call: Call<ServiceTarget>, id: string): Promise<ServiceTarget> {
  const application = await applicationTarget.find(call.db, id, [call.target.organizationId], { lock: true });
  if (!application) throw notFound('Application');
  call.require('service.edit', application);
  return application;
}

/**
 * Links an application with a database of its environment: the application gets the database's URL under a key. Throws 400 for another
 * environment, 409 if they are linked or the key is taken.
 */
export async function linkApplication(
  call: Call<ServiceTarget>,
  applicationId: string,
  key: string,
): Promise<ServiceTarget> {
  const database = call.target;
  const application = await findApplication(call, applicationId);
  for (const service of [database, application]) refuseDeleting(service);
  if (application.environmentId !== database.environmentId)
    throw badRequest(
      `${application.name} is in another environment than ${database.name}: only services of one environment reach each other.`,
    );
  const source = builtInId(database.id, 'DATABASE_URL_INTERNAL');
  const { entry } = await aliasVariable(call, placeOf(application, 'APPLICATION'), source, 'secret', { key });
  const { organizationId } = database;
  try {
    await insertLink(call.db, {
      organization_id: organizationId,
      database_id: database.id,
      application_id: application.id,
      variable_id: entry.id,
    });
  } catch (error) {
    if (brokenConstraint(error) === 'database_link_pkey')
      throw conflict(`${application.name} is linked with ${database.name} already.`);
    throw error;
  }
  await tell(call, { linked_application: { id: application.id, name: application.name, key } });
  return (await applicationTarget.find(call.db, applicationId, [organizationId], { lock: false }))!;
}

/** Deletes a link and its alias. Throws 404 if they are not linked. */
export async function unlinkApplication(call: Call<ServiceTarget>, applicationId: string): Promise<void> {
  const application = await findApplication(call, applicationId);
  const link = await deleteLink(call.db, call.target, call.target.id, applicationId);
  if (!link) throw notFound('Link');
  if (link.variable_id) await removeVariable(call, placeOf(application, 'APPLICATION'), link.variable_id, undefined);
  await tell(call, { unlinked_application: { id: application.id, name: application.name } });
}

const tell = (call: Call<ServiceTarget>, after: Record<string, unknown>) =>
  audit(call, {
    organizationId: call.target.organizationId,
    type: 'UPDATE',
    ...placeOfService(call.target),
    after: { id: call.target.id, name: call.target.name, ...after },
  });
