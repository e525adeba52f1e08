import { conflict, internal } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { lockSubject } from '#platform/database/locks.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { cloneEnvironment } from '#services/capabilities/environment/clone/index.ts';
import { repositoryKey } from '#services/capabilities/service/git-webhook/index.ts';
import { placeOfEnvironment, submit } from '#services/capabilities/service/actions/request.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { awaitedOf } from '#services/previews/awaited.ts';
import { commitsOf, headOf } from '#services/previews/choices.ts';
import { forkHeadOf } from '#services/previews/forks.ts';
import { makerContext } from '#services/previews/maker.ts';
import * as queries from '#services/previews/queries.ts';
import { following, isOf, type PreviewedService } from '#services/previews/sources.ts';
import { previewSpec } from '#services/previews/spec.ts';
import { expireIn } from '#services/previews/expiry.ts';
import { noteCommits } from '#services/pushes/commit-status.ts';
import { forkServiceRefusal } from '#services/service/forks.ts';
import { listAllServicesByEnvironment, type ServiceRow } from '#services/service/queries.ts';
import { changeSpec } from '#services/service/service.ts';
import type { GitSource } from '#services/sources/git.ts';

const LONGEST_NAME = 255;

/** Preview that was made. */
export interface MadePreview {
  environmentId: string;
  /** Commit that each service which follows the head was asked to run, by id. */
  awaited: Record<string, string>;
}

/**
 * Clones an environment for a pull request and requests the deployment of the clone. Returns the clone; undefined if no
 * file of the pull request concerns a service with `auto_preview`. The services of the repository
 * follow the head, the others are deployed as they are released in the source. Throws AppError with the reason where there can be no preview.
 */
export async function createPreview(
  outer: Context,
  { kinds, unaffected }: { kinds: Kind[]; unaffected: ReadonlySet<string> },
  source: EnvironmentTarget,
  preview: queries.PreviewRow,
): Promise<MadePreview | undefined> {
  const { context, require } = await makerContext(outer, source, preview);
  require('environment.edit', source);
  if (preview.is_fork) require('service.deploy', source);
  const rows = await listRows(context, source);
  const base = { repository: preview.repository, branch: preview.base_branch, isDefault: preview.base_is_default };
  const before = following(rows, kinds, base).filter(({ row }) => !row.deleting);
  const previewed = before.filter(({ row }) => row.spec.auto_preview === true);
  if (previewed.length === 0)
    throw conflict(`No service of ${source.name} with auto_preview follows ${preview.base_branch} any more.`);
  if (preview.is_fork) refuseRights(previewed);
  if (previewed.every(({ row }) => unaffected.has(row.id))) return undefined;
  await refuseTooMany(outer, source);
  const name = await nameOf(context, source, preview);
  const fork = preview.is_fork ? forkHeadOf(preview, source) : undefined;
  const options = { isPreview: true, ...(fork ? { fork } : {}) };
  const clone = await cloneEnvironment({ ...context, target: source, require }, kinds, { name, mode: 'PREVIEW' }, options); // prettier-ignore
  const environment = await environmentTarget.find(context.db, clone.id, [source.organizationId], { lock: true });
  if (!environment) throw internal(`Environment ${clone.id} is gone within its own transaction.`);
  require('service.deploy', environment);
  await expireIn(context, environment);

  const kindOf = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  const copies = await listRows(context, environment);
  const chosen = following(copies, kinds, base);
  for (const row of copies) {
    const kind = kindOf.get(row.kind)!;
    const branchOf = (one: GitSource) =>
      repositoryKey(one) === base.repository && isOf(one, base) ? (fork?.fork_ref ?? preview.head_branch) : one.branch;
    await changeSpec(context, kind, row, previewSpec(kind, row.spec, branchOf));
  }
  const originals = new Map(rows.map((row) => [`${row.kind} ${row.name}`, row]));
  const choices = new Map<string, DeployChoice>();
  for (const row of copies) {
    if (row.is_skipped) continue;
    const released = commitsOf(originals.get(`${row.kind} ${row.name}`), kindOf);
    choices.set(row.id, { ...released, ...headOf(preview, chosen.filter((one) => one.row.id === row.id)) }); // prettier-ignore
  }
  // Not as a deployment of the whole environment: a later head joins it while it waits.
  const ids = [...choices.keys()];
  const deploymentId = await submit(context, placeOfEnvironment(environment), 'DEPLOY', ids, { choices, automatic: true }); // prettier-ignore
  await noteCommits(context, deploymentId, preview.head_commit, chosen.filter(({ row }) => choices.has(row.id))); // prettier-ignore
  const deployed = chosen.flatMap(({ row }) => (choices.has(row.id) ? [row.id] : []));
  return { environmentId: environment.id, awaited: awaitedOf(preview.head_commit, deployed) };
}

const listRows = (context: Context, { id, organizationId }: EnvironmentTarget): Promise<ServiceRow[]> =>
  listAllServicesByEnvironment(context.db, { organizationId }, id).execute();

/** Throws 409 with the reasons if no service may run beside the code of a fork: a preview without them would tell of a head that never ran. */
function refuseRights(previewed: PreviewedService[]): void {
  const refusals = previewed.map(({ row }) => forkServiceRefusal(row));
  if (refusals.every((reason) => reason !== undefined)) throw conflict([...new Set(refusals)].join(' '));
}

/** Throws 409 if the organization has as many previews as the settings allow. Other processes wait until the commit. */
async function refuseTooMany(context: Context, { organizationId }: EnvironmentTarget): Promise<void> {
  const { previewsPerOrganization: most } = context.settings;
  if (most === 0)
    throw conflict('Previews are switched off on this installation (QUARTERDECK_PREVIEWS_PER_ORGANIZATION).');
  await lockSubject(context.db, 'previews of organization', organizationId);
  if ((await queries.countPresent(context.db, { organizationId })) >= most)
    throw conflict(
      `The organization has ${most} previews, which is the limit: close a pull request, or delete an environment of a preview; the next push makes this one.`,
    );
}

/** Returns the name of a preview: with the repository where two repositories have a pull request of the number. */
async function nameOf(context: Context, source: EnvironmentTarget, preview: queries.PreviewRow): Promise<string> {
  const { organizationId, projectId } = source;
  const label = `PR ${preview.number}`;
  const name = `${source.name.slice(0, LONGEST_NAME - label.length - 1)} ${label}`;
  if (!(await queries.isNameTaken(context.db, { organizationId }, projectId, name))) return name;
  const longer = `${preview.repository.slice(preview.repository.lastIndexOf('/') + 1)} ${label}`.slice(-100);
  return `${source.name.slice(0, LONGEST_NAME - longer.length - 1)} ${longer}`;
}
