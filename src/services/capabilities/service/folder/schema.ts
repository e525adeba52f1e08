import { Merge, Type } from '#platform/http/schema.ts';
import { Status } from '#services/capabilities/service/status/schema.ts';

/** Types of tar archives; curl sends none of its own with `-T`. */
export const ARCHIVE_TYPES = [
  'application/gzip',
  'application/x-gzip',
  'application/x-tar',
  'application/x-gtar',
  'application/octet-stream',
] as const;

export const FolderArchive = Type.String({
  format: 'binary',
  description: 'Tar archive of a folder, plain or packed by gzip.',
});

/** Status of the service, with the commit that the folder became. */
export const FolderAnswer = Merge(
  Status,
  Type.Object({
    git_commit_id: Type.String({
      description:
        'Commit that the folder became. `git_commit_id` of `POST …/deploy` takes it, as long as the folder is kept.',
    }),
    deployment_git_commit_id: Type.String({
      description:
        'Commit that the requested deployment takes. It differs from `git_commit_id` where a later request joined the deployment before it began.',
    }),
    files: Type.Integer({ description: 'Files of the folder.' }),
    size_in_bytes: Type.Integer({ description: 'Size of the files.' }),
  }),
);
