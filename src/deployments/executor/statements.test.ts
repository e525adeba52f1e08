import { beforeEach, describe, expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';
import { EXAMPLE, exampleBody, makeExample, useEngine } from '#test/harness/engine.ts';

/** Statements that hold the claim, without those of a log that a slow machine writes in between. */
let fenced: string[] = [];
const app = useApp({ QUARTERDECK_BUILD_SLOTS: '1' }, {}, (text) => {
  if (text.includes('hold_claim(') && !text.startsWith('with w0 as (insert into "deployment_log"')) fenced.push(text);
});
useEngine(app);
beforeEach(() => (fenced = []));

const recaps = () => fenced.filter((text) => /update "deployment" set (?:(?! where ).)*"status"/.test(text));

describe('a deployment', () => {
  test('of one service sends one statement for its start, each step that waits for something, and its end', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    expect(ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
    // The start, GIT_CLONE, BUILD with BUILD_QUEUEING, DEPLOYMENT, the service's end with RECAP, the end.
    expect(fenced).toHaveLength(6);
    expect(fenced.map((text) => text.match(/insert into "deployment_step"/g)?.length ?? 0)).toEqual([0, 1, 2, 1, 0, 0]);
    expect(recaps()).toEqual([fenced[4], fenced[5]]);
  });

  test('of several services writes RECAP once, after all of them have ended', async () => {
    const { admin, environment } = await makeThree();
    expect(ok(await admin.post(`/environment/${environment.id}/deploy?wait=40`), 200).state).toBe('DEPLOYED');
    expect(recaps()).toHaveLength(2);
    expect(recaps()[1]).toBe(fenced.at(-1));
  });

  test('ends in an error where a service failed before the last one ended well', async () => {
    const { admin, environment } = await makeThree('no-such-branch');
    expect(ok(await admin.post(`/environment/${environment.id}/deploy?wait=40`), 200).state).toBe('DEPLOYMENT_ERROR');
    const row = await app.db
      .selectFrom('deployment')
      .select(['status', 'outcome'])
      .where('environment_id', '=', environment.id)
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ status: 'ENDED', outcome: 'ERROR' });
  });
});

/** Creates an environment of three applications, the last of which is deployed from `branch`. */
async function makeThree(branch = 'HEAD') {
  const admin = await app.organization();
  const { environment } = await makeExample(admin);
  for (const body of [{ name: 'second' }, { name: 'third', git_repository: { url: EXAMPLE, branch } }])
    ok(await admin.post(`/environment/${environment.id}/application`, exampleBody(body)), 201);
  fenced = [];
  return { admin, environment };
}
