import { invalidField } from '#kernel/errors.ts';
import { Type } from '#platform/http/schema.ts';

/** Parameter of the query of every log, which `refuseFollow` refuses. */
export const FollowQuery = {
  follow: Type.Optional(
    Type.Boolean({
      description:
        'Refused: a log ends with its newest line; `GET /organization/{organizationId}/eventStream` sends new ones.',
    }),
  ),
};

/** Throws 400 for `follow`, and names the event stream in the message. Without this error the log would end in silence. */
export function refuseFollow(query: { follow?: boolean }, organizationId: string): void {
  if (query.follow)
    throw invalidField(
      'follow',
      `must be false: a log ends with its newest line; GET /organization/${organizationId}/eventStream?types=log sends those of deployments as they come`,
    );
}
