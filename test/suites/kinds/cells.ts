import { expect } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { Kind } from '#services/kind.ts';
import { ok, type Actor } from '#test/harness/app.ts';
import type { Sample, SamplePlace } from './samples.ts';

/** Service of a kind in an environment of its own, with its paths and callers. */
export interface Cell extends SamplePlace {
  kind: Kind;
  sample: Sample;
  /** Path of the service: `/container/{id}`. */
  url: string;
  id: string;
  name: string;
  /** Returns whether the fake runtime has anything of the service. */
  isThere(): boolean;
  stranger: Actor;
}

type CellTest = (cell: Cell) => Promise<void>;

const listUrl = ({ kind, environmentId }: Cell) => `/environment/${environmentId}/${kind.path}`;
/** Deploys the service. A kind without a deploy operation is deployed with its environment. */
const deploy = async ({ admin, url, kind, environmentId }: Cell) =>
  ok(await admin.post(`${kind.operations ? `/environment/${environmentId}` : url}/deploy?wait=30`), 200);
const stateOf = async ({ admin, url }: Cell) => ok(await admin.get(`${url}/status`), 200);
const isGone = ({ admin, url }: Cell) =>
  expect.poll(async () => (await admin.get(url)).status, { timeout: 20_000 }).toBe(404);

/** Tests of each capability, which hold for every kind. */
export const CELL_TESTS: Record<string, CellTest> = {
  create: async (cell) => {
    const { admin, stranger, sample } = cell;
    const body = { ...(await sample.body(cell)), name: cell.name.toUpperCase() };
    ok(await admin.post(listUrl(cell), body), 409);
    ok(await stranger.post(listUrl(cell), body), 404);
    ok(await (await admin.withScope('READ')).post(listUrl(cell), body), 403);
    ok(await admin.post(listUrl(cell), { ...body, name: '' }), 400);
  },
  list: async (cell) => {
    const list = ok(await cell.admin.get(listUrl(cell)), 200);
    const [one] = list.results;
    expect(list.pagination.total_count).toBe(1);
    expect(one).toEqual(ok(await cell.admin.get(cell.url), 200));
    expect(one).toMatchObject({ id: cell.id, service_type: cell.kind.kind, environment: { id: cell.environmentId } });
    const every = ok(await cell.admin.get(`/environment/${cell.environmentId}/services`), 200).results;
    expect(every).toEqual([one]);
    ok(await cell.stranger.get(cell.url), 404);
  },
  edit: async (cell) => {
    const { admin, url, sample } = cell;
    const before = ok(await admin.get(url), 200);
    const named = { ...(await sample.body(cell)), name: 'other name', description: 'told' };
    const edited = ok(await admin.put(url, { ...named, ...sample.edit }), 200);
    expect(edited).toMatchObject({ id: before.id, name: 'other name', description: 'told' });
    expect(ok(await admin.get(url), 200)).toEqual(edited);
    ok(await (await admin.withScope('READ')).put(url, named), 403);
    ok(await (await admin.withScope('DEPLOY')).put(url, named), 403);
  },
  delete: async (cell) => {
    await deploy(cell);
    ok(await (await cell.admin.withScope('DEPLOY')).delete(cell.url), 403);
    ok(await cell.stranger.delete(cell.url), 404);
    ok(await cell.admin.delete(cell.url), cell.sample.deletion ?? 204);
    await isGone(cell);
    expect(cell.isThere()).toBe(false);
  },
  status: async (cell) => {
    expect(await stateOf(cell)).toMatchObject({
      id: cell.id,
      state: 'READY',
      service_deployment_status: 'NEVER_DEPLOYED',
      status_details: { action: 'UNKNOWN', status: 'NEVER' },
    });
  },
  statuses: async (cell) => {
    const { results } = ok(await cell.admin.get(`${listUrl(cell)}/status`), 200);
    expect(results.map(({ id }: { id: string }) => id)).toEqual([cell.id]);
    const all = ok(await cell.admin.get(`/environment/${cell.environmentId}/statuses`), 200);
    expect(Object.values(all).flat()).toContainEqual(expect.objectContaining({ id: cell.id }));
  },
  deploy: async (cell) => {
    const { admin, url, sample } = cell;
    expect(await deploy(cell)).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'UP_TO_DATE' });
    ok(await admin.put(url, { ...(await sample.body(cell)), name: cell.name, ...sample.edit }), 200);
    expect(await stateOf(cell)).toMatchObject({ service_deployment_status: 'OUT_OF_DATE' });
    const again = ok(await admin.post(`/environment/${cell.environmentId}/deploy?wait=30`), 200);
    expect(again.state).toBe('DEPLOYED');
    expect(await stateOf(cell)).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'UP_TO_DATE' });
    ok(await (await admin.withScope('READ')).post(`${url}/deploy`), 403);
    ok(await cell.stranger.post(`${url}/deploy`), 404);
  },
  redeploy: async (cell) => {
    expect(ok(await cell.admin.post(`${cell.url}/redeploy?wait=30`), 200).state).toBe('DEPLOYED');
  },
  stop: async (cell) => {
    const { admin, url, sample } = cell;
    expect(ok(await admin.post(`${url}/stop?wait=30`), 200).state).toBe('STOPPED');
    await deploy(cell);
    expect(ok(await admin.post(`${url}/stop?wait=30`), 200).state).toBe(sample.stopped ?? 'STOPPED');
    expect((await deploy(cell)).state).toBe('DEPLOYED');
  },
  restart: async (cell) => {
    ok(await cell.admin.post(`${cell.url}/restart-service`), 409);
    await deploy(cell);
    expect(ok(await cell.admin.post(`${cell.url}/restart-service?wait=30`), 200).state).toBe('RESTARTED');
  },
  uninstall: async (cell) => {
    await deploy(cell);
    expect(ok(await cell.admin.post(`${cell.url}/uninstall?wait=30`), 200)).toMatchObject({
      state: 'DELETED',
      service_deployment_status: 'NEVER_DEPLOYED',
    });
    expect(cell.isThere()).toBe(false);
    expect((await deploy(cell)).state).toBe('DEPLOYED');
  },
  rollback: async (cell) => {
    const { admin, url, sample } = cell;
    const { execution_id } = await deploy(cell);
    ok(await admin.put(url, { ...(await sample.body(cell)), name: cell.name, ...sample.edit }), 200);
    await deploy(cell);
    const back = ok(await admin.post(`${url}/rollback?wait=30`, { execution_id }), 200);
    expect(back).toMatchObject({ state: 'DEPLOYED', service_deployment_status: 'OUT_OF_DATE' });
  },
  plan: async (cell) => {
    const { stages } = ok(await cell.admin.get(`${cell.url}/deploymentPlan`), 200);
    const [planned] = stages.flatMap((stage: { services: object[] }) => stage.services);
    const status = await deploy(cell);
    expect(planned).toMatchObject({
      id: cell.id,
      steps: status.steps.details.map(({ step_name }: { step_name: string }) => step_name),
    });
  },
  history: async (cell) => {
    await deploy(cell);
    const { results } = ok(await cell.admin.get(`${cell.url}/deploymentHistory`), 200);
    expect(results).toHaveLength(1);
    const { historyV1 } = cell.kind.capabilities ?? {};
    expect(results[0]).toMatchObject({ status: historyV1 === 'outcomes' ? 'SUCCESS' : 'DEPLOYED' });
  },
  'history v2': async (cell) => {
    await deploy(cell);
    const { results } = ok(await cell.admin.get(`${cell.url}/deploymentHistoryV2`), 200);
    expect(results[0]).toMatchObject({
      status: 'DEPLOYED',
      identifier: { service_id: cell.id, service_type: cell.kind.kind },
    });
  },
  clone: async (cell) => {
    const { admin, url, environmentId } = cell;
    await deploy(cell);
    const clone = ok(await admin.post(`${url}/clone`, { name: 'copy', environment_id: environmentId }), 201);
    expect(clone.id).not.toBe(cell.id);
    const status = ok(await admin.get(`/${cell.kind.path}/${clone.id}/status`), 200);
    expect(status.service_deployment_status).toBe('NEVER_DEPLOYED');
    expect(ok(await admin.post(`/${cell.kind.path}/${clone.id}/deploy?wait=30`), 200).state).toBe('DEPLOYED');
    ok(await admin.post(`${url}/clone`, { name: 'copy', environment_id: environmentId }), 409);
    ok(await admin.post(`${url}/clone`, { name: 'other', environment_id: newId() }), 400);
  },
  variables: async (cell) => {
    const { admin, url } = cell;
    await deploy(cell);
    const made = ok(await admin.post(`${url}/environmentVariable`, { key: 'LEVEL', value: 'high' }), 201);
    expect(made).toMatchObject({ key: 'LEVEL', value: 'high', scope: cell.kind.kind });
    expect((await stateOf(cell)).service_deployment_status).toBe('OUT_OF_DATE');
    const list = ok(await admin.get(`${url}/environmentVariable`), 200).results;
    expect(list).toContainEqual(expect.objectContaining({ id: made.id, service_id: cell.id }));
    ok(await admin.delete(`${url}/environmentVariable/${made.id}`), 204);
  },
  secrets: async (cell) => {
    const { admin, url } = cell;
    const made = ok(await admin.post(`${url}/secret`, { key: 'TOKEN', value: 'never-shown-again' }), 201);
    const list = ok(await admin.get(`${url}/secret`), 200);
    expect(list.results).toContainEqual(expect.objectContaining({ id: made.id, key: 'TOKEN' }));
    expect(JSON.stringify([made, list])).not.toContain('never-shown-again');
  },
  'advanced settings': async (cell) => {
    const { admin, url, kind } = cell;
    const defaults = ok(await admin.get(`/default${kind.tag}AdvancedSettings`), 200);
    expect(ok(await admin.get(`${url}/advancedSettings`), 200)).toEqual(defaults);
    const [key, value] = Object.entries(defaults).find(([, present]) => typeof present === 'number') as [
      string,
      number,
    ];
    expect(ok(await admin.put(`${url}/advancedSettings`, { ...defaults, [key]: value + 1 }), 200)[key]).toBe(value + 1);
    ok(await admin.put(`${url}/advancedSettings`, { ...defaults, [key]: 'many' }), 400);
  },
  'deployment restrictions': async (cell) => {
    const { admin, url } = cell;
    const body = { mode: 'MATCH', type: 'PATH', value: 'src' };
    const made = ok(await admin.post(`${url}/deploymentRestriction`, body), 201);
    expect(ok(await admin.get(`${url}/deploymentRestriction`), 200).results).toMatchObject([{ id: made.id, ...body }]);
    ok(await admin.delete(`${url}/deploymentRestriction/${made.id}`), 204);
  },
  'custom domains': async (cell) => {
    const { admin, url, id } = cell;
    const body = { domain: `${id}.example.com`, generate_certificate: false };
    const made = ok(await admin.post(`${url}/customDomain`, body), 201);
    expect(made.validation_domain).toEqual(expect.any(String));
    expect(ok(await admin.get(`${url}/customDomain`), 200).results).toMatchObject([{ id: made.id }]);
    ok(await admin.delete(`${url}/customDomain/${made.id}`), 204);
  },
  links: async (cell) => {
    const { results } = ok(await cell.admin.get(`${cell.url}/link`), 200);
    expect(results.length).toBe(cell.sample.links ?? 1);
    for (const link of results) expect(link).toMatchObject({ service_id: cell.id, service_type: cell.kind.kind });
  },
  network: async (cell) => {
    const { admin, url } = cell;
    const network = ok(await admin.get(`${url}/network`), 200);
    ok(await admin.put(`${url}/network`, { ...network, sticky_session: true }), 200);
    expect(ok(await admin.get(`${url}/network`), 200).sticky_session).toBe(true);
  },
  commits: async (cell) => {
    const answer = await cell.admin.get(`${cell.url}/commit`);
    expect(ok(answer, 200).results.length).toBeGreaterThan(0);
  },
  logs: async (cell) => {
    await deploy(cell);
    ok(await cell.admin.get(`${cell.url}/log`), 200);
    ok(await cell.stranger.get(`${cell.url}/log`), 404);
  },
};
