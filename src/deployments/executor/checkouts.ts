import { chmod, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { sourcesOf, type Run } from '#deployments/executor/run-context.ts';
import type { ServiceWork } from '#deployments/executor/service-work.ts';
import type { TaskCheckout } from '#deployments/model/kind.ts';
import type { RuntimeContext } from '#runtimes/runtime.ts';

/** Returns the folder of all checkouts of a deployment, in whatever attempt. */
export const checkoutsOf = (workDirectory: string, deploymentId: string): string =>
  path.join(workDirectory, deploymentId);

/** Returns the folder of one attempt alone: processes of an earlier, frozen attempt may still write into their own. */
export const attemptFolder = ({ parts, claim }: Pick<Run, 'parts' | 'claim'>): string =>
  path.join(checkoutsOf(parts.workDirectory, claim.deployment.id), claim.token);

/** Returns the folder of a service's own checkout. */
export const checkoutDirectory = ({ run, service }: ServiceWork): string =>
  path.join(attemptFolder(run), service.serviceId);

/** Makes a folder below the work directory, which no other account of the machine may enter. */
export async function makePrivate(workDirectory: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(workDirectory, 0o700);
}

/** Checks the commit of a service's repository out into its folder, if it has a repository. */
export async function checkout(work: ServiceWork, { signal, log }: RuntimeContext): Promise<void> {
  const { run, service } = work;
  const source = run.parts.kinds[service.kind]!.source(service);
  const directory = checkoutDirectory(work);
  await makePrivate(run.parts.workDirectory, directory);
  if (source?.type !== 'git') return;
  const commit = run.resolution.services[service.serviceId]?.commit;
  if (!commit) throw new Error(`The commit of ${source.url} is not known.`);
  const { organizationId } = run.scope;
  log(commit.uploaded ? `Unpacking the uploaded folder ${commit.id}` : `Cloning ${source.url} at ${commit.id}`);
  const of = commit.uploaded ? { uploadedFor: service.serviceId } : {};
  const isUntrusted = run.claim.names.isFork;
  await sourcesOf(run).checkout({ ...source, ...of, organizationId, commit: commit.id, isUntrusted, directory, signal, log }); // prettier-ignore
}

/** Returns the folder for the repositories of a service's commands. */
export const repositoriesDirectory = (work: ServiceWork): string => path.join(checkoutDirectory(work), 'repositories');

/** Checks the repositories of a command out into their folder, each at the present head of its branch. */
export async function checkoutAll(
  work: ServiceWork,
  { repositories }: TaskCheckout,
  { signal, log }: RuntimeContext,
): Promise<void> {
  const sources = sourcesOf(work.run);
  const { organizationId } = work.run.scope;
  const isUntrusted = work.run.claim.names.isFork;
  const base = repositoriesDirectory(work);
  await rm(base, { recursive: true, force: true });
  await makePrivate(work.run.parts.workDirectory, base);
  for (const { folder, ...source } of repositories) {
    const commit = await sources.resolve({ ...source, organizationId, commitId: null, signal });
    log(`Cloning ${source.url} at ${source.branch} (${commit.id}) into ${folder}`);
    const directory = path.join(base, folder);
    await sources.checkout({ ...source, organizationId, commit: commit.id, isUntrusted, directory, signal, log });
  }
}
