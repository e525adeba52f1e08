import { inspectWork } from '#app/work-reports.ts';
import { print } from '#cli/print.ts';
import type { Settings } from '#platform/settings/index.ts';

const HEADS = ['WORK', 'WAITING', 'RUNNING', 'RETRIED', 'OLDEST WAITING', 'LAST FAILURE'];

/** Prints for each kind of durable work what waits, runs, is oldest, was begun again and failed last. */
export async function inspectWorkCommand(settings: Settings): Promise<void> {
  const found = await inspectWork(settings);
  const rows = found.map((one) => [
    one.name,
    String(one.waiting),
    String(one.running),
    String(one.retried),
    one.oldestWaiting?.toISOString() ?? '-',
    one.lastFailure ? `${one.lastFailure.at.toISOString()} ${firstLineOf(one.lastFailure.error)}`.trimEnd() : '-',
  ]);
  const widths = HEADS.map((head, at) => Math.max(head.length, ...rows.map((row) => row[at]!.length)));
  for (const row of [HEADS, ...rows])
    print(
      row
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join('  ')
        .trimEnd(),
    );
}

const firstLineOf = (text: string | null): string => (text ?? '').split('\n')[0]!.slice(0, 200);
