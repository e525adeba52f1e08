import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { ApiServer } from '../api-server.fixture.ts';
import { pathOf } from '../cluster.ts';
import { identityLabels, namespaceOf } from '../labels.ts';
import { removeService } from '../lifecycle.ts';
import { readRecord, recordName } from '../record/index.ts';
import { sealOf } from '../record/seal.ts';
import { recordAnew } from './anew.ts';
import { chartHandle } from './handle.ts';

/** Ends a release as helm does: deletes the secret of its revision through the server of its kubeconfig. */
const UNINSTALL = `#!${process.execPath}
const { readFileSync } = require('node:fs');
const { server } = JSON.parse(readFileSync(process.env.KUBECONFIG, 'utf8')).clusters[0].cluster;
const [, release, , namespace] = process.argv.slice(2);
fetch(server + '/api/v1/namespaces/' + namespace + '/secrets/sh.helm.release.v1.' + release + '.v1', { method: 'DELETE' })
  .then(async (answer) => { if (!answer.ok) { console.error(await answer.text()); process.exit(1); } });
`;

async function writeProgram(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'qd-helm-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const program = path.join(folder, 'helm.cjs');
  await writeFile(program, UNINSTALL);
  await chmod(program, 0o755);
  return program;
}

test('a chart whose record was altered is removed by what helm keeps of it', async () => {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  const identity = newIdentity('test', 3);
  const namespace = namespaceOf(identity);
  const hostname = `helm-z${identity.serviceId.slice(0, 8)}`;
  const revision = `sh.helm.release.v1.${hostname}.v1`;
  const metadata = { name: revision, labels: { owner: 'helm', name: hostname, version: '1', status: 'deployed' } };
  api.put(pathOf('Secret', namespace, revision), { metadata });
  const name = recordName(identity.serviceId);
  const record = recordAnew(identity, hostname);
  const seal = sealOf(cluster.recordKey, { namespace, name, text: JSON.stringify(record) });
  const altered = JSON.stringify({ ...record, hostname: 'another' });
  api.put(pathOf('ConfigMap', namespace, name), {
    metadata: { name, labels: identityLabels(identity) },
    data: { record: altered, seal },
  });
  await expect(readRecord(cluster, identity)).rejects.toThrow('was changed by somebody else');
  const removal = { ...identity, generation: 4 };
  const withHelm = { ...cluster, helm: await writeProgram() };
  await removeService(withHelm, removal, chartHandle({ identity, hostname }), newContext());
  expect([...api.objects.keys()].filter((one) => one.includes(`/${namespace}/`))).toEqual([]);
});
