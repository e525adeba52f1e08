import { anySignal } from '#kernel/lease-signal.ts';
import type { Readable } from 'node:stream';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { STREAMED_REQUEST_MS } from '#platform/http/body-stream.ts';
import type { Settings } from '#platform/settings/index.ts';
import { ARCHIVE_TYPES, FolderAnswer, FolderArchive } from '#services/capabilities/service/folder/schema.ts';
import { deployFolder, settleFolder } from '#services/capabilities/service/folder/service.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import { refuseDeleting } from '#services/service/service.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import type { StoredFolder } from '#services/sources/uploads/index.ts';

const mostBytes = ({ sourceUploadMb }: Settings): number => sourceUploadMb * 2 ** 20;

/** Deployment of a folder that the call brings, instead of a commit of the repository. */
export function folderRoutes(kind: Kind, { storeFolder }: Pick<ServiceNeeds, 'storeFolder'>): Route[] {
  if (!kind.capabilities?.folder) return [];
  const { target } = holderOf(kind);
  const receive = async (call: Call<ServiceTarget>): Promise<StoredFolder> => {
    const { target: service, actor } = call;
    refuse(call);
    const signal = anySignal([call.signal, AbortSignal.timeout(STREAMED_REQUEST_MS)]);
    return storeFolder({
      organizationId: service.organizationId,
      serviceId: service.id,
      body: call.body as Readable,
      author: actor.name,
      signal,
    });
  };
  return [
    defineRoute({
      id: `deploy${kind.tag}Folder`,
      method: 'POST',
      path: `/${kind.path}/{${paramOf(kind)}}/source`,
      tag: `${kind.tag} Actions`,
      summary: `Deploy a folder as a service of kind ${kind.path}`,
      description:
        'The body is a tar archive of the folder. It becomes a commit of its own, which is deployed like one of the repository; the configured repository stays as it is. The same content is the same commit as long as it is kept. Also takes the permission to deploy.',
      target,
      action: 'service.edit',
      bodyContentType: ARCHIVE_TYPES[0],
      body: FolderArchive,
      streamedBody: {
        types: ARCHIVE_TYPES,
        mostBytes,
        // A repetition may be another commit by now, with another date.
        fingerprint: (body) => (body as StoredFolder).treeId,
      },
      answer: { status: 202, body: FolderAnswer, description: 'The folder is stored, and its deployment requested.' },
      errors: [409],
      before: { run: async (call) => void Object.assign(call, { body: await receive(call as Call<ServiceTarget>) }) },
      handler: (call) => {
        refuse(call as Call<ServiceTarget>);
        return deployFolder(call, call.target, call.body as unknown as StoredFolder);
      },
      settle: (call, answer, seconds) =>
        settleFolder(call, call.target, call.body as unknown as StoredFolder, { answer, seconds, signal: call.signal }),
    }),
  ];
}

/** Throws 403 for a caller who may not deploy, and 409 for a service that is being deleted. */
function refuse(call: Call<ServiceTarget>): void {
  call.require('service.deploy', call.target);
  refuseDeleting(call.target);
}
