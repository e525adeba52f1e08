import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { useApp } from '#test/harness/app.ts';

const lines: string[] = [];
const app = useApp({ QUARTERDECK_LOG_LEVEL: 'info' }, {}, undefined, (line) => lines.push(line));

test.each([
  ['the secret of a report', 'GET', (mark: string) => `/buildUsageReport/${newId()}/${mark}`],
  ['the address of an agent', 'POST', (mark: string) => `/agenticWorkflowWebhook/on-call-${mark}`],
  ['a path with another method', 'PUT', (mark: string) => `/agenticWorkflowWebhook/on-call-${mark}`],
  ['a path that leads nowhere', 'GET', (mark: string) => `/buildUsageReports/${newId()}/${mark}`],
  ['a query', 'GET', (mark: string) => `/organization?token=${mark}`],
  ['an id that is none', 'GET', (mark: string) => `/project/${mark}`],
] as const)('the access log does not show %s', async (_what, method, urlOf) => {
  const mark = newId().replaceAll('-', '');
  lines.length = 0;
  await app.anonymous(method, urlOf(mark));
  expect(lines.join('')).toContain('"msg":"request"');
  expect(lines.join('')).not.toContain(mark);
});

test('the access log shows which thing was asked for', async () => {
  const id = newId();
  lines.length = 0;
  await app.anonymous('GET', `/api/v1/project/${id}/environment`);
  expect(lines.join('')).toContain(`"path":"/project/${id}/environment"`);
});
