import type { Readable } from 'node:stream';
import type { DockerNode } from './node.ts';

/** End of a run of a container, by the engine's event. */
interface RunEnd {
  /** Milliseconds since 1970. The engine sends the event after the run's last line is in the log. */
  time: number;
  exitCode: number;
}

/** Returns null for year 1, the engine's time for events that never happened. */
export const timeOf = (text: string): string | null => (text.startsWith('0001-') ? null : new Date(text).toISOString());

/**
 * Lists the ends of a container's runs in a past range of seconds since 1970, oldest first. Older ends may be missing: the engine keeps its
 * last 256 events.
 */
export async function listRunEnds(
  node: DockerNode,
  id: string,
  range: { since: number; until: number },
): Promise<RunEnd[]> {
  const filters = { container: [id], event: ['die'] };
  // The engine answers at once when `until` is in the past.
  const stream = (await node.engine.getEvents({ ...range, filters })) as Readable;
  const text = (await stream.setEncoding('utf8').toArray()).join('').trim();
  if (text === '') return [];
  return text.split('\n').map((line) => {
    const event = JSON.parse(line) as { timeNano: number; Actor: { Attributes: { exitCode: string } } };
    return { time: Math.floor(event.timeNano / 1e6), exitCode: Number(event.Actor.Attributes.exitCode) };
  });
}
