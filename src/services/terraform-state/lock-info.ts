/** Lock information that Terraform sends when it locks a state, and that the answer to a refused request contains. */
export interface LockInfo {
  ID: string;
  Operation: string;
  Info: string;
  Who: string;
  Version: string;
  Created: string;
  Path: string;
}

/** Maximum length of a text; Terraform writes shorter ones. */
const MAX_TEXT = 1000;

/** Reads lock information; undefined if the value has none. Unknown fields are left out. */
export function toLockInfo(value: unknown): LockInfo | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  const said = value as Record<string, unknown>;
  const text = (name: keyof LockInfo): string => {
    const given = said[name];
    return typeof given === 'string' ? given.slice(0, MAX_TEXT).replaceAll('\0', '') : '';
  };
  if (!/^[\w.:-]{1,200}$/.test(text('ID'))) return undefined;
  return {
    ID: text('ID'),
    Operation: text('Operation'),
    Info: text('Info'),
    Who: text('Who'),
    Version: text('Version'),
    // Terraform parses it as a time, and reads nothing of the lock if that fails.
    Created: Number.isNaN(Date.parse(text('Created'))) ? new Date().toISOString() : text('Created'),
    Path: text('Path'),
  };
}

/** Describes the holder of a lock in a sentence for people. */
export const holderOfLock = (lock: LockInfo): string =>
  `the lock ${lock.ID}${lock.Who ? ` of ${lock.Who}` : ''}${lock.Operation ? ` (${lock.Operation})` : ''}${lock.Created ? ` since ${lock.Created}` : ''}`;
