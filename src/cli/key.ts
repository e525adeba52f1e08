import { describeKeys, rotateKey, stageNextKey, type Rotation } from '#platform/vault/key-rotation.ts';
import { withBase } from '#cli/base.ts';
import { print } from '#cli/print.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Puts a new key in front and seals everything anew with it, or only makes it for the other machines. */
export async function rotateKeyCommand(settings: Settings, { stage }: { stage?: true }): Promise<void> {
  await withBase(settings, async (base) => {
    if (stage) {
      const file = stageNextKey(base);
      print(
        `The next key is in ${file}. Copy it beside the key file of every other machine, then run \`quarterdeck key rotate\`.`,
      );
    } else print(textOf(await rotateKey(base)));
  });
}

function textOf({ file, keyId, resumed, rewrapped, others }: Rotation): string {
  const lines = [
    `${resumed ? 'The rotation that had begun is done' : 'Rotated'}: the key ${keyId} is the first line of ${file}, and ${rewrapped} values were sealed anew with it.`,
    'Nothing in the database needs an older key any more.',
    'Keep the older lines as long as you keep backups that were made before now: a restore needs them. Then they may be deleted.',
    'Keep a copy of the new file where you kept the old one.',
  ];
  if (others.length > 0)
    lines.push(
      `Copy ${file} to ${others.join(', ')} now, and delete the .next file there; \`quarterdeck key status\` tells whether something is still sealed with an older key.`,
    );
  return lines.join('\n');
}

/** Prints which keys there are and how many values each encrypts. */
export async function keyStatusCommand(settings: Settings): Promise<void> {
  await withBase(settings, async (base) => {
    for (const [index, { keyId, values, here }] of (await describeKeys(base)).entries())
      print(`${keyId}  ${values} values${index === 0 ? ', encrypts' : ''}${here ? '' : ', NOT IN THE KEY FILE'}`);
  });
}
