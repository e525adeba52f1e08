/** Number of files that a proxy opens besides connections: its log, its control socket, files of Node itself. */
const OWN_FILES = 64;

/** Returns how many files this process may open. Node has raised the soft limit to the hard one when it started. */
export function openFilesLimit(): number {
  // Without this setting Node asks the DNS for the name of every peer; its types lack the property.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: number | 'unlimited' } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Infinity;
}

/** Returns how many visitors' connections a proxy can accept: each may need one to an upstream as well. */
export const connectionsFor = (openFiles: number, wanted: number): number =>
  Math.max(1, Math.min(wanted, Math.floor((openFiles - OWN_FILES) / 2)));

/** Returns a remedy for a limit of open files that allows fewer connections than wanted; null if it allows them. */
export function connectionAdvice(openFiles: number, wanted: number): string | null {
  const connections = connectionsFor(openFiles, wanted);
  if (connections >= wanted) return null;
  return (
    `The proxy takes at most ${connections} connections at once instead of ${wanted}, because a process may open ` +
    `${openFiles} files here: raise the limit to ${2 * wanted + OWN_FILES} (LimitNOFILE= of a systemd unit, ulimit -Hn of a shell).`
  );
}
