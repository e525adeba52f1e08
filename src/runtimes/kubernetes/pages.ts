import type { Connection } from './connection.ts';
import { TooLargeError } from './errors.ts';
import type { ClusterObject, List } from './kinds.ts';

/** Form of a list of objects without anything but their metadata. */
export const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

interface ListOptions {
  labelSelector: string;
  /** Objects in a page at most. */
  limit: number;
  accept?: string;
  signal?: AbortSignal;
}

/** Page of a list. */
interface Page<T> extends List<T> {
  /** Objects that are too large to be read, by their metadata. */
  large: ClusterObject[];
}

/**
 * Yields the pages of a list. A page that is too large to be read is read in smaller ones, down to single objects: what one environment puts
 * into the cluster must not hide the objects of others.
 */
export async function* readPages<T extends ClusterObject>(
  connection: Connection,
  path: string,
  { labelSelector, limit: most, accept, signal }: ListOptions,
): AsyncGenerator<Page<T>> {
  let limit = most;
  let next: string | undefined;
  const read = <O>(form: string | undefined): Promise<List<O>> =>
    connection.get(path, {
      query: { labelSelector, limit, ...(next === undefined ? {} : { continue: next }) },
      ...(form === undefined ? {} : { accept: form }),
      ...(signal ? { signal } : {}),
    });
  do {
    const answer = await unlessTooLarge(read<T>(accept));
    if (!answer && limit > 1) {
      limit = Math.ceil(limit / 4);
      continue;
    }
    const large = answer ? null : await read<ClusterObject>(METADATA_LIST);
    const { metadata } = (answer ?? large)!;
    yield { metadata, items: answer?.items ?? [], large: large?.items ?? [] };
    next = metadata.continue || undefined;
    if (next === undefined) return;
    limit = Math.min(most, limit * 2);
  } while (true);
}

async function unlessTooLarge<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof TooLargeError) return null;
    throw error;
  }
}
