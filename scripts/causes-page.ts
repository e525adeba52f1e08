// The page docs/causes.md, from the known causes of failures. gen-causes.ts writes it; a suite compares.
import { ERROR_CODES, KNOWN_CAUSES, type ErrorCode } from '#deployments/index.ts';
import { table } from './table.ts';

const rowsOf = (code: ErrorCode): string[][] =>
  Object.entries(KNOWN_CAUSES)
    .filter(([, { of }]) => of[0] === code)
    .map(([name, { summary, fix }]) => [`\`${name}\``, summary, fix]);

const sections = (): string =>
  (Object.keys(ERROR_CODES) as ErrorCode[])
    .filter((code) => rowsOf(code).length > 0)
    .map(
      (code) =>
        `## ${code}\n\n${ERROR_CODES[code]}\n\n${table(['cause', 'what happened', 'what usually fixes it'], rowsOf(code))}`,
    )
    .join('\n\n');

/** The text of docs/causes.md. */
export const causesPage = (): string => `# Causes of failures

A deployment that fails says why: \`error\` of a service's status and history, of webhooks and of audit events has a \`code\`, the \`step\`, a \`message\`, and in \`cause\` what it came from, if that is known. The deployment's log has the cause behind the error, and alerts name it.

\`\`\`json
{
  "code": "NOT_READY",
  "step": "DEPLOYMENT",
  "message": "Instance 1 did not get ready: …",
  "cause": {
    "code": "PORT_IN_USE",
    "summary": "${KNOWN_CAUSES['PORT_IN_USE']!.summary}",
    "fix": "${KNOWN_CAUSES['PORT_IN_USE']!.fix}",
    "lines": ["Error: listen EADDRINUSE: address already in use :::8080"]
  },
  "log_url": "/environment/…/logs?version=…"
}
\`\`\`

A cause is found by the message and by what the program, or its build, has written last. \`lines\` are those lines, so that you can judge for yourself: a program that complains of one thing and ends because of another is taken at its word. Without a known cause \`cause\` is null. A cause below one code can stand behind others as well, such as \`DISK_FULL\` behind a build. \`npm run gen\` writes this page from \`src/deployments/causes\`.

${sections()}
`;
