import path from 'node:path';
import { fieldsOfMount } from '#kernel/parsing/mount-fields.ts';

/** Secret that a RUN has, by `--mount=type=secret`. */
export interface SecretMount {
  id: string;
  /** Variable of the command; null where it is a file alone. */
  env: string | null;
  isRequired: boolean;
}

/** Reads the value of an option `--mount`; null if it mounts no secret. */
export function secretMountOf(mount: string): SecretMount | null {
  const fields = new Map(fieldsOfMount(mount));
  if (fields.get('type')?.toLowerCase() !== 'secret') return null;
  const file = fields.get('target') ?? fields.get('dst') ?? fields.get('destination');
  const id = fields.get('id') ?? fields.get('source') ?? fields.get('src') ?? path.posix.basename(file ?? '');
  const isRequired = fields.has('required') && fields.get('required')?.toLowerCase() !== 'false';
  return { id, env: fields.get('env') ?? null, isRequired };
}
