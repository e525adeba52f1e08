import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { sql, type Database, type Scope } from '#platform/database/index.ts';
import type { DeploymentLine } from '#deployments/logs/writer.ts';

/** A stored part of a log: lines of JSON, compressed. */
export interface StoredChunk {
  sequence: number;
  content: Buffer;
}

/** Chunks of a log that are read at once: 64 KiB each, so that reading them blocks nothing else for long. */
const CHUNKS_AT_ONCE = 4;

/** A part of a deployment's log. */
interface LogPart {
  /** Oldest first. */
  lines: DeploymentLine[];
  /** Sequence of the last chunk read. */
  last: number;
  /** True if more was there behind it. */
  hasMore: boolean;
}

/** Reads the next lines of a deployment after a chunk, at most 256 KiB. */
export async function readDeploymentLog(db: Database, scope: Scope, deploymentId: string, after = 0): Promise<LogPart> {
  const chunks = await db
    .selectFrom('deployment_log')
    .select(['sequence', 'content'])
    .where('organization_id', '=', scope.organizationId)
    .where('deployment_id', '=', deploymentId)
    .where('sequence', '>', after)
    .orderBy('sequence')
    .limit(CHUNKS_AT_ONCE + 1)
    .execute();
  const hasMore = chunks.length > CHUNKS_AT_ONCE;
  if (hasMore) chunks.pop();
  return { lines: await linesOf<DeploymentLine>(chunks), last: chunks.at(-1)?.sequence ?? after, hasMore };
}

const unpack = promisify(gunzip);

/** Reads the lines of chunks, in their order. They are unpacked beside the main thread, one after the other. */
export async function linesOf<Line>(chunks: Pick<StoredChunk, 'content'>[]): Promise<Line[]> {
  const lines: Line[] = [];
  for (const { content } of chunks)
    for (const line of (await unpack(content)).toString().split('\n')) lines.push(JSON.parse(line) as Line);
  return lines;
}

/** Single chunks of deployments in the order in which they are named; undefined for one that is gone. */
export async function readLogChunks(
  db: Database,
  scope: Scope,
  chunks: { deploymentId: string; sequence: number }[],
): Promise<(DeploymentLine[] | undefined)[]> {
  const { rows } = await sql<{ content: Buffer | null }>`
    select log.content from unnest(${chunks.map((chunk) => chunk.deploymentId)}::uuid[], ${chunks.map((chunk) => chunk.sequence)}::bigint[])
      with ordinality as wanted(deployment_id, sequence, place)
    left join deployment_log log on log.organization_id = ${scope.organizationId}
      and log.deployment_id = wanted.deployment_id and log.sequence = wanted.sequence
    order by wanted.place`.execute(db);
  return Promise.all(rows.map(async ({ content }) => (content ? linesOf<DeploymentLine>([{ content }]) : undefined)));
}
