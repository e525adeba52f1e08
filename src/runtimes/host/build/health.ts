import type { Instruction } from '#runtimes/host/build/dockerfile.ts';
import { RuntimeError, type Probe } from '#runtimes/runtime.ts';

const UNITS: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3600 };

/** Parses a duration such as `1m30s` into seconds. Throws RuntimeError `build_failed`. */
export function parseDuration(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text)
    throw new RuntimeError('build_failed', `"${text}" is not a duration such as 30s.`);
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0);
}

/** Converts HEALTHCHECK into a check; null for NONE. */
export function parseHealth(instruction: Instruction, shell: string[]): Probe | null {
  if (/^none$/i.test(instruction.text)) return null;
  const match = /^cmd\s+([^]+)$/i.exec(instruction.text);
  if (!match)
    throw new RuntimeError('build_failed', 'HEALTHCHECK is written "HEALTHCHECK CMD command" or "HEALTHCHECK NONE".');
  const seconds = (name: string, otherwise: string) => parseDuration(instruction.flags[name]?.at(-1) ?? otherwise);
  const command = match[1]!.startsWith('[') ? (JSON.parse(match[1]!) as string[]) : [...shell, match[1]!];
  return {
    check: { type: 'exec', command },
    initialDelaySeconds: 0,
    periodSeconds: seconds('start-interval', '5s'),
    timeoutSeconds: seconds('timeout', '30s'),
    successThreshold: 1,
    failureThreshold: Number(instruction.flags['retries']?.at(-1) ?? 3),
  };
}
