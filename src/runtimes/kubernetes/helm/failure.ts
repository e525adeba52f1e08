import { RuntimeError, type ChartSpec } from '#runtimes/runtime.ts';
import type { FailedPod, Watched } from './watch.ts';

/** Characters of helm's error that people read. */
const MOST_CHARACTERS = 2_000;
/** Log lines of a pod that an error quotes. */
const LOG_LINES = 20;

/** Remedies for errors of helm, by a part of their text. */
const REMEDIES: [RegExp, string][] = [
  [
    /missing in charts\/ directory/,
    'Commit the folder charts (`helm dependency update`): dependencies are not downloaded.',
  ],
  [/another operation \(.*\) is in progress/, 'Deploy the service again: what was cut off is taken back first.'],
  [
    /cannot be imported into the current release|exists and cannot be/,
    'Give the object of the chart another name by its values.',
  ],
  [
    /is forbidden: .*cannot/,
    'Give the account of the kubeconfig the right, as docs/guides/kubernetes.md says for charts.',
  ],
  [/don't meet the specifications of the schema/, "Correct the values: the chart's values.schema.json refuses them."],
  [
    /no matches for kind/,
    'Install the operator that defines the kind, or a version of the chart for this version of Kubernetes.',
  ],
];

interface Seen {
  watched: Watched;
  refusals: ReadonlySet<string>;
}

/** Explains why helm failed: what a pod lacked where a hook failed or one did not get ready, else helm's own words with a remedy. */
export function failureOf(spec: ChartSpec, stderr: string, { watched, refusals }: Seen): RuntimeError {
  const text = stderr
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('WARNING: '))
    .slice(-10)
    .join('\n')
    .replace(/^Error: /, '')
    .slice(0, MOST_CHARACTERS);
  const [refusal] = refusals;
  if (refusal !== undefined) return new RuntimeError('failed', `The chart ${spec.title} was refused: ${refusal}`);
  const hook = isOfHook(text) ? watched.failedHook : null;
  if (hook !== null)
    return ofPod('failed', `The hook ${hook.pod} of the chart ${spec.title} failed: ${hook.why}.`, hook, text);
  const { failed } = watched;
  if (isTimeout(text) && failed !== null)
    return ofPod(
      'not_ready',
      `${failed.pod} of the chart ${spec.title} was not ready within ${spec.timeoutSeconds} s (timeout_sec): ${failed.why}.`,
      failed,
      text,
    );
  const remedy = REMEDIES.find(([pattern]) => pattern.test(text))?.[1];
  const code = isTimeout(text) ? 'not_ready' : 'failed';
  return new RuntimeError(code, [`The chart ${spec.title} was not applied: ${text}`, remedy ?? ''].join(' ').trim());
}

function ofPod(code: 'failed' | 'not_ready', problem: string, { lines }: FailedPod, text: string): RuntimeError {
  const quoted = lines.slice(-LOG_LINES).map((line) => `  ${line.text}`);
  const log = quoted.length > 0 ? `Last lines of its log:\n${quoted.join('\n')}` : 'It wrote no log.';
  const left = isLeft(text) ? `The release before was not brought back completely: ${text}` : '';
  return new RuntimeError(code, [problem, left, log].filter((part) => part !== '').join(' ')).withLines(lines);
}

/** Returns whether helm failed at a hook: `pre-upgrade hooks failed: …`, `failed post-install: …`. */
const isOfHook = (text: string): boolean => /(?:pre|post)-\w+ hooks failed|failed (?:pre|post)-\w+:/.test(text);

/**
 * Returns whether something of a failed upgrade stands. Helm 3 also fails to take an upgrade back that a hook ended before it changed
 * anything, if the chart has fewer objects than before (https://github.com/helm/helm/issues/13437): that is nothing.
 */
const isLeft = (text: string): boolean =>
  text.includes('an error occurred while rolling back') && !text.includes('pre-upgrade hooks failed');

const isTimeout = (text: string): boolean =>
  /timed out waiting|context deadline exceeded|would exceed context deadline|failed: .*not ready|BackoffLimitExceeded|DeadlineExceeded/.test(
    text,
  );
