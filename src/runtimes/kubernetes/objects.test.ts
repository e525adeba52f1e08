import { describe, expect, test } from 'vitest';
import { newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { companionsOf, deploymentOf } from './objects.ts';

const spec = (changes: Partial<WorkloadSpec> = {}): WorkloadSpec => newSpec(newIdentity('test'), 'shop:1', changes);
const containerOf = (made: WorkloadSpec) => deploymentOf(made).spec.template.spec.containers[0]!;
const kindsOf = (made: WorkloadSpec) => companionsOf(made).map(({ kind }) => kind);

describe('the objects of a release', () => {
  test('hold values of variables, contents of files and passwords in Secrets only', () => {
    const secret = 'hunter22';
    const made = spec({
      environment: { PASSWORD: secret },
      files: [{ path: '/etc/key', content: secret }],
      registry: { host: 'docker.io', username: 'u', password: secret },
    });
    const all = [deploymentOf(made), ...companionsOf(made)];
    const encoded = Buffer.from(secret).toString('base64');
    for (const object of all.filter(({ kind }) => kind !== 'Secret'))
      expect(JSON.stringify(object)).not.toMatch(new RegExp(`${secret}|${encoded}`));
    const { data } = all.find(({ metadata }) => metadata.name === `${made.hostname}-1`)!;
    expect(data).toMatchObject({ PASSWORD: encoded, 'file-0': encoded });
    const access = all.find(({ type }) => type === 'kubernetes.io/dockerconfigjson')!.data as Record<string, string>;
    const { auths } = JSON.parse(String(Buffer.from(access['.dockerconfigjson']!, 'base64')));
    expect(auths).toMatchObject({ 'https://index.docker.io/v1/': { username: 'u', password: secret } });
  });

  test('leave references to variables in commands as they were written', () => {
    const { command, args } = containerOf(spec({ entrypoint: ['sh', '-c'], arguments: ['echo $(HOME) $$ ${X}'] }));
    expect([command, args]).toEqual([['sh', '-c'], ['echo $$(HOME) $$$$ $${X}']]);
  });

  test('are no Service and no Ingress for a workload without ports and routes', () => {
    expect(kindsOf(spec())).toEqual(['Secret', 'Service', 'NetworkPolicy', 'Ingress']);
    expect(kindsOf(spec({ ports: [], routes: [] }))).toEqual(['Secret']);
    expect(kindsOf(spec({ storage: [{ id: 'a', mountPath: '/a', sizeGib: 3 }] }))).toContain('PersistentVolumeClaim');
  });

  test('run without new privileges, and with a read-only root where the service says so', () => {
    const context = { allowPrivilegeEscalation: false, capabilities: { drop: ['NET_RAW', 'MKNOD'] } };
    expect(containerOf(spec())['securityContext']).toEqual(context);
    const strict = containerOf(spec({ hasReadOnlyRoot: true }))['securityContext'];
    expect(strict).toEqual({ ...context, readOnlyRootFilesystem: true });
  });

  test('recreate what has volumes, and replace the rest without a gap', () => {
    const storage = [{ id: 'a', mountPath: '/a', sizeGib: 3 }];
    expect(deploymentOf(spec({ storage })).spec['strategy']).toEqual({ type: 'Recreate' });
    expect(deploymentOf(spec()).spec['strategy']).toMatchObject({ rollingUpdate: { maxUnavailable: 0 } });
  });

  test.each([
    [{ type: 'http', port: 1, path: '/a', scheme: 'HTTPS' }, { httpGet: { port: 1, path: '/a', scheme: 'HTTPS' } }],
    [{ type: 'tcp', port: 2, host: 'other' }, { tcpSocket: { port: 2 } }],
    [{ type: 'exec', command: ['a', 'b'] }, { exec: { command: ['a', 'b'] } }],
    [{ type: 'grpc', port: 3, service: null }, { grpc: { port: 3, service: '' } }],
  ] as const)('have the check %j, which connects to the pod only', (check, expected) => {
    const times = {
      initialDelaySeconds: 1,
      periodSeconds: 2,
      timeoutSeconds: 3,
      successThreshold: 1,
      failureThreshold: 4,
    };
    const made = spec({ liveness: { ...times, check: check as never } });
    expect(containerOf(made)['livenessProbe']).toEqual({ ...times, ...expected });
  });

  test('check a routed port where there is no check of readiness', () => {
    expect(containerOf(spec({ readiness: null }))['readinessProbe']).toMatchObject({ tcpSocket: { port: 8080 } });
    expect(containerOf(spec({ readiness: null, routes: [] }))).not.toHaveProperty('readinessProbe');
  });

  test('carry labels and annotations where their scopes say, never in place of our own', () => {
    const made = spec({
      labels: { team: 'a', 'quarterdeck.service': 'forged' },
      annotations: [
        { scopes: ['PODS'], values: { note: 'pod' } },
        { scopes: ['INGRESS', 'SERVICES'], values: { note: 'outside' } },
      ],
    });
    const deployment = deploymentOf(made);
    expect(deployment.metadata.labels).toMatchObject({ team: 'a', 'quarterdeck.service': made.identity.serviceId });
    expect(deployment.metadata.annotations).not.toHaveProperty('note');
    expect(deployment.spec.template.metadata.annotations).toEqual({ note: 'pod' });
    for (const { kind, metadata } of companionsOf(made))
      expect(metadata.annotations ?? {}).toEqual(['Service', 'Ingress'].includes(kind) ? { note: 'outside' } : {});
  });
});
