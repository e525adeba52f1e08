import { gunzipSync } from 'node:zlib';
import type { Database, Scope } from '#platform/database/index.ts';
import type { DeploymentLine } from '#deployments/logs/writer.ts';

/** Lines of a deployment after a chunk, oldest first, with the sequence of the last chunk read. */
export async function readDeploymentLog(
  db: Database,
  scope: Scope,
  deploymentId: string,
  after = 0,
): Promise<{ lines: DeploymentLine[]; last: number }> {
  const chunks = await db
    .selectFrom('deployment_log')
    .select(['sequence', 'content'])
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deploymentId)
    .where('sequence', '>', after)
    .orderBy('sequence')
    .execute();
  const lines = chunks.flatMap((chunk) =>
    gunzipSync(chunk.content)
      .toString()
      .split('\n')
      .map((line) => JSON.parse(line) as DeploymentLine),
  );
  return { lines, last: chunks.at(-1)?.sequence ?? after };
}
