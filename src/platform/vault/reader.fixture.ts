import { text } from 'node:stream/consumers';
import { openDatabase } from '#platform/database/index.ts';
import { openInstallation, readVaultKeys, rereadVaultKeys } from '#platform/vault/key.ts';

/**
 * Process that reads the secret of every organization in rounds, with a vault that remembers nothing. Prints after each round how many
 * secrets it read. The database's configuration and the key file come as JSON on the standard input; any failure ends it.
 */
const { config, file } = JSON.parse(await text(process.stdin));
const { db, close } = openDatabase({ config: { ...config, max: 4 } });
const keys = readVaultKeys(file, false);
let going = true;
process.on('SIGTERM', () => (going = false));
// The keys are those of the start; every round opens all data keys anew.
while (going) {
  const { vault } = await openInstallation(db, keys, () => rereadVaultKeys(file));
  const rows = await db.selectFrom('organization').select(['id', 'description']).execute();
  // Each opens a data key by a statement of its own: side by side, so that a round is not as long as all of their ways together.
  await Promise.all(
    rows.map(async ({ id, description }) => {
      const value = await vault.open(db, id, `test/${id}`, Buffer.from(description!, 'base64'));
      if (value !== `secret of ${id}`) throw new Error(`${id} has another secret: ${value}`);
    }),
  );
  console.log(`read ${rows.length} ${vault.keyIds()[0]}`);
}
await close();
