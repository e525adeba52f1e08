import { conflict } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { actOnService } from '#services/capabilities/service/actions/request.ts';
import { requestOf, settleService } from '#services/capabilities/service/actions/settle.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import { findCommitOfRequest, keepUpload, type StoredFolder } from '#services/sources/uploads/index.ts';

/** Requests the deployment of a folder that was stored for the service. */
export async function deployFolder(context: Context, service: ServiceTarget, folder: StoredFolder) {
  const of = { organizationId: service.organizationId, serviceId: service.id };
  if (!(await keepUpload(context.db, of, folder.id)))
    throw conflict('Other folders were uploaded at the same time: upload it again.');
  const choices = new Map([[service.id, { commitId: folder.commitId }]]);
  return toFolderView(await actOnService(context, service, 'DEPLOY', { choices }), folder, folder.commitId);
}

/** Waits for the deployment of a folder (`?wait=`), and returns the status of the service then. */
export async function settleFolder(
  context: Context,
  service: ServiceTarget,
  folder: StoredFolder,
  { answer, seconds, signal }: { answer: unknown; seconds: number; signal: AbortSignal },
) {
  const of = { organizationId: service.organizationId, serviceId: service.id };
  const status = await settleService(context, service, answer, seconds, signal);
  const request = requestOf(answer);
  const deployed = request ? await findCommitOfRequest(context.db, of, request) : undefined;
  return toFolderView(status, folder, deployed ?? folder.commitId);
}

/** Adds the commits of a folder and of its deployment to the status of its service. */
const toFolderView = <S>(status: S, { commitId, files, bytes }: StoredFolder, deployed: string) => ({
  ...status,
  git_commit_id: commitId,
  deployment_git_commit_id: deployed,
  files,
  size_in_bytes: bytes,
});
