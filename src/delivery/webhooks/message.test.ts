import { expect, test } from 'vitest';
import { bodyOf } from '#delivery/webhooks/message.ts';
import { event } from '#delivery/webhooks/webhooks.fixture.ts';
import { newId } from '#kernel/ids.ts';
import type { Actor } from '#test/harness/app.ts';

test('names and reasons in a text for Slack are no markup, mention or link, and turn no line around', () => {
  const hostile = 'a\u202ecod <!channel> @here *x* https://evil.example\nnext';
  const names = { id: newId(), name: hostile };
  const said = event({ organizationId: newId() } as Actor, {
    type: 'DEPLOYMENT_FAILURE',
    organization: names,
    project: names,
    environment: { ...names, mode: 'PRODUCTION' },
    service: { ...names, type: 'APPLICATION' },
    error: { message: hostile } as NonNullable<ReturnType<typeof event>['error']>,
  });
  const { text } = JSON.parse(bodyOf('SLACK', 'DEPLOYMENT_FAILED', said, 'https://quarterdeck.example'));
  expect(text.split(String.raw`a\u202ecod`)).toHaveLength(6);
  for (const active of ['\u202e', '\n', '<!', '@here', ' *x', 'https://', 'evil.example'])
    expect(text).not.toContain(active);
});
