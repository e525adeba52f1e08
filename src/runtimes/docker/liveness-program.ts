import { LivenessWatch } from './liveness.ts';
import { connect } from './connect.ts';

/**
 * Entry point of the process that watches liveness probes, kept running by a shim: `liveness-program.ts <installation> <address>`, the
 * address as JSON (`{"socketPath"}` or `{"host"}`).
 */
async function main([installation, address]: string[]): Promise<void> {
  if (installation === undefined || address === undefined)
    throw new Error('usage: liveness-program <installation> <address>');
  const abort = new AbortController();
  process.once('SIGTERM', () => abort.abort());
  const watch = new LivenessWatch(connect(JSON.parse(address)), installation, (line) => console.log(line));
  await watch.run(abort.signal);
  process.exit(0);
}

// Only imported: this fills the compile cache for the next start.
if (import.meta.main) await main(process.argv.slice(2));
