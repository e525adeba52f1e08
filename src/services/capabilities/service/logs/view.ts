import type { LineIds } from '#services/capabilities/service/logs/line-id.ts';
import type { LogLine } from '#runtimes/runtime.ts';

/** Returns the view of a line of an instance, in the list and in the stream. */
export const toServiceLog = (line: Omit<LogLine, 'stream'>, ids: LineIds) => ({
  id: ids.next(line.instance, line.at, line.text),
  created_at: line.at,
  message: line.text,
  pod_name: line.instance,
  version: String(line.generation),
});

/** Returns the view of a line of a run. It has no pod name and no version: the task that wrote it is gone and belonged to no release. */
export const toRunLog = (line: { run: string; at: string; text: string }, ids: LineIds) => ({
  id: ids.next(line.run, line.at, line.text),
  created_at: line.at,
  message: line.text,
  pod_name: '',
  version: '',
});
