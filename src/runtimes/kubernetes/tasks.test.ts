import { describe, expect, test } from 'vitest';
import { newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import type { TaskSpec } from '#runtimes/runtime.ts';
import type { Job, Pod } from './kinds.ts';
import { containerNameOf } from './pods.ts';
import { endedBefore } from './task-keeper.ts';
import { taskRefusals } from './tasks.ts';
import { hasBegun, jobName, jobOf, newSecretNames, taskSecrets } from './task-objects.ts';
import { outputOf } from './task-output.ts';

const task = (changes: Partial<TaskSpec> = {}): TaskSpec => newTask(newIdentity('test'), 'job:1', [], changes);

describe('the Job of an execution', () => {
  test('has the same name for the same execution only, which Kubernetes takes as a label', () => {
    const spec = task({ name: 'a'.repeat(40) });
    expect(jobName(spec)).toBe(jobName(task({ ...spec, image: 'other:1' })));
    expect(jobName(spec)).toMatch(/^[a-z0-9-]{1,63}$/);
    const { identity } = spec;
    const others = [
      { ...spec, name: 'b' },
      { ...spec, identity: { ...identity, generation: 2 } },
      task({ name: spec.name }),
    ];
    expect(new Set([spec, ...others].map((one) => jobName(one))).size).toBe(4);
  });

  test('carries labels and annotations of its scopes, and starts one pod once it is begun', () => {
    const annotations = [
      { scopes: ['JOBS'], values: { team: 'job' } },
      { scopes: ['PODS'], values: { team: 'pod' } },
      { scopes: ['DEPLOYMENTS'], values: { team: 'none' } },
    ];
    const spec = task({ annotations, labels: { mine: 'yes' }, timeoutSeconds: 60 });
    const job = jobOf(spec, newSecretNames(spec)) as Job;
    expect([job.metadata.annotations, job.spec.template.metadata.annotations]).toMatchObject([
      { team: 'job' },
      { team: 'pod' },
    ]);
    expect([job.metadata.labels, job.spec.template.metadata.labels]).toMatchObject([{ mine: 'yes' }, { mine: 'yes' }]);
    expect(job.spec).toMatchObject({ suspend: true, backoffLimit: 0, completions: 1, parallelism: 1 });
    expect(job.spec.template.spec).toMatchObject({ restartPolicy: 'Never', activeDeadlineSeconds: 660 });
    expect(hasBegun(job)).toBe(false);
  });

  test('owns its Secrets, of which there are none for a command without variables, files and access', () => {
    const registry = { host: 'registry.example.com', username: 'u', password: 'p' };
    const spec = task({ registry, environment: { A: '1' } });
    const job = { metadata: { name: jobName(spec), uid: 'uid' } } as Job;
    const secrets = taskSecrets(spec, newSecretNames(spec), job);
    expect(secrets.map(({ type }) => type)).toEqual([undefined, 'kubernetes.io/dockerconfigjson']);
    for (const { metadata } of secrets)
      expect(metadata).toMatchObject({ ownerReferences: [{ kind: 'Job', name: jobName(spec), uid: 'uid' }] });
    expect(taskSecrets(task(), newSecretNames(spec), job)).toEqual([]);
  });
});

describe('the pod of a command with a shell and an output file', () => {
  const spec = task({ hasShell: true, outputPath: '/answer/a.json', environment: { A: '1' }, timeoutSeconds: 60 });
  const { template } = (jobOf(spec, newSecretNames(spec)) as Job).spec;
  const [keeper, command] = template.spec.containers;

  test('has a container of the same image that sees the folder of the file alone, and begins first', () => {
    expect([keeper!.name, command!.name]).toEqual(['output', 'app']);
    expect(keeper!.image).toBe(command!.image);
    expect(keeper!['env']).toBeUndefined();
    expect(keeper!['volumeMounts']).toEqual([{ name: 'output', mountPath: '/answer', readOnly: true }]);
    expect(command!['volumeMounts']).toEqual([{ name: 'output', mountPath: '/answer' }]);
    expect(command!['terminationMessagePath']).toBeUndefined();
    expect(template.spec['activeDeadlineSeconds']).toBe(660 + 6 * 3600);
  });

  test('stands for its command, whatever annotations its service has', () => {
    const values = { 'kubectl.kubernetes.io/default-container': 'output' };
    const annotated = { ...spec, annotations: [{ scopes: ['PODS'], values }] };
    const { template: other } = (jobOf(annotated, newSecretNames(spec)) as Job).spec;
    expect(containerNameOf(other as unknown as Pod)).toBe('app');
  });

  test('that ended after its command does not make a cut-off of it', () => {
    const pod = (finishedAt: string) =>
      ({ status: { containerStatuses: [{ name: 'output', state: { terminated: { exitCode: 0, finishedAt } } }] } }) as unknown as Pod; // prettier-ignore
    const ended = { exitCode: 0, finishedAt: '2026-01-01T00:00:01Z' };
    expect(endedBefore(pod('2026-01-01T00:00:02Z'), ended)).toBe(true);
    expect(endedBefore(pod('2026-01-01T00:00:01Z'), ended)).toBe(false);
    expect(endedBefore({} as Pod, ended)).toBe(false);
  });
});

test('an output that may lack its beginning is refused, also where others have added containers to the pod', () => {
  const of = (bytes: number, containers: number) => () =>
    outputOf(
      { outputPath: '/out' },
      { spec: { containers: Array.from({ length: containers }) } } as Partial<Pod> as Pod,
      { exitCode: 0, message: 'ü'.repeat(bytes / 2) },
    );
  expect(of(4094, 1)()).toHaveLength(2047);
  expect(of(4096, 1)).toThrow('has 4096 bytes or more');
  expect(of(3070, 4)()).toHaveLength(1535);
  expect(of(3072, 4)).toThrow('hands on at most 3071');
});

test('a command that needs a proxy, files of a repository or graphics processors is refused with a remedy', () => {
  const changes = {
    egress: { rules: [], allowedPrivateAddresses: [] },
    folders: [{ path: '/a', directory: '/b' }],
    gpus: 1,
  };
  expect(taskRefusals(task(changes))).toHaveLength(3);
  expect(taskRefusals(task())).toEqual([]);
});
