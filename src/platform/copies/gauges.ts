import { Gauge, type Registry } from 'prom-client';
import { sql, type Database } from '#platform/database/index.ts';

/** Registers when the last copy of the installation was taken and when one was last found good; nothing until there is one. */
export function registerCopyGauges(registry: Registry, db: Database): void {
  const registers = [registry];
  const last = async () => {
    const { rows } = await sql<{ taken: number | null; checked: number | null }>`
      select extract(epoch from max(taken_at))::float8 as taken,
        extract(epoch from max(checked_at) filter (where check_error is null))::float8 as checked
      from installation_copy`.execute(db);
    return rows[0]!;
  };
  new Gauge({
    name: 'quarterdeck_copy_taken_timestamp_seconds',
    help: 'When the newest copy in the store elsewhere was taken, in seconds since 1970.',
    registers,
    async collect() {
      const { taken } = await last();
      if (taken === null) this.remove();
      else this.set(taken);
    },
  });
  new Gauge({
    name: 'quarterdeck_copy_checked_timestamp_seconds',
    help: 'When a copy was last restored into a scratch database and found good, in seconds since 1970.',
    registers,
    async collect() {
      const { checked } = await last();
      if (checked === null) this.remove();
      else this.set(checked);
    },
  });
}
