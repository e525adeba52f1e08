import { readFileSync } from 'node:fs';
import { onTestFinished, test, expect, vi } from 'vitest';
import type { Handle } from '#runtimes/runtime.ts';
import { ApiServer } from '../api-server.fixture.ts';
import { pathOf, type Kind } from '../cluster.ts';
import { API } from '../extensions.ts';
import { LABEL } from '../labels.ts';
import { RequestCounter } from './counter.ts';
import { uncountedReasons } from './reasons.ts';

const fixture = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
/** Texts of a real Traefik 3.6.12 whose services had ports 8080 and 8081 of HTTP, and 9090 of gRPC. */
const BY_INGRESS = fixture('./traefik-ingress.fixture.txt');
const BY_GATEWAY = fixture('./traefik-gateway.fixture.txt');

const environmentOf = (letter: string) => `00000000-0000-4000-8000-00000000000${letter}`;
const namespaceOf = (letter: string) => `qd-${environmentOf(letter)}`;
const handleOf = (letter: string) =>
  ({ identity: { serviceId: `service-${letter}`, environmentId: environmentOf(letter) } }) as Handle;

interface Options {
  controller?: string;
  /** Namespace and number of Traefik's pods. */
  pods?: [namespace: string, name: string][];
}

/** Plays a cluster whose service `a` is reached by Ingress, and `b` through a Gateway. */
async function clusterOf({ controller = 'traefik.io', pods = [['traefik', 'one']] }: Options = {}) {
  const { api, cluster, close } = await ApiServer.start();
  onTestFinished(close);
  api.apis = [API.gateways];
  const put = (kind: Kind, name: string, object: object, metadata: object = {}) =>
    api.put(`${pathOf(kind)}/${name}`, { ...object, metadata: { name, ...metadata } });
  put('IngressClass', 'web', { spec: { controller: `${controller}/ingress-controller` } });
  put('GatewayClass', 'web', { spec: { controllerName: `${controller}/gateway-controller` } });
  put('Gateway', 'public', { spec: { gatewayClassName: 'web' } }, { namespace: 'edge' });
  const labels = (letter: string) => ({ [LABEL.installation]: 'test', [LABEL.service]: `service-${letter}` });
  const ports = [8080, 8081, 9090];
  const route = (letter: string, name = `a-${letter}`, at = namespaceOf(letter)) =>
    put('HTTPRoute', name, {
      spec: {
        parentRefs: [{ kind: 'Gateway', namespace: 'edge', name: 'public' }],
        rules: ports.map((port) => ({ backendRefs: [{ name: 'app-z0000000b', port }] })),
      },
    }, { namespace: at, labels: labels(letter) }); // prettier-ignore
  const backend = (number: number) => ({ backend: { service: { name: 'app-z0000000a', port: { number } } } });
  put('Ingress', 'a', { spec: { ingressClassName: 'web', rules: [{ http: { paths: ports.map(backend) } }] } }, { namespace: namespaceOf('a'), labels: labels('a') }); // prettier-ignore
  route('b');
  const addPod = ([namespace, name]: [string, string], created = '2026-01-01T00:00:00Z') =>
    put('Pod', name, { status: { phase: 'Running' }, spec: { containers: [] } }, { namespace, labels: { 'app.kubernetes.io/name': 'traefik' }, creationTimestamp: created }); // prettier-ignore
  for (const pod of pods) addPod(pod);
  const tell = (text: string, namespace = 'traefik', name = 'one', port = 9100) =>
    api.texts.set(`/api/v1/namespaces/${namespace}/pods/${name}:${port}/proxy/metrics`, text);
  const counter = new RequestCounter(cluster);
  const count = (since: string | null, letters = ['a', 'b']) =>
    counter.count(letters.map(handleOf), since, AbortSignal.timeout(10_000));
  return { api, cluster, put, addPod, tell, count, route };
}

/** Adds to the counters of answers with a status. */
const more = (text: string, code: string, count: number): string =>
  text.replace(new RegExp(`(requests_total\\{code="${code}".*protocol="http".*\\}) (\\d+)`, 'g'), (_all, name: string, old: string) => `${name} ${Number(old) + count}`); // prettier-ignore
const restarted = (text: string): string => text.replace(/(process_start_time_seconds) [\d.e+]+/, '$1 1.8e+09');
const none = (text: string): string =>
  text.replace(/^(traefik_service\S+) .*$/gm, '$1 0').replace(/^process_start\S+ .*$/m, 'process_start_time_seconds 1');

/** Returns the statuses of each service. */
const statusesOf = (found: Awaited<ReturnType<RequestCounter['count']>>) =>
  Object.fromEntries((found?.counts?.services ?? []).map(({ serviceId, statuses }) => [serviceId.at(-1), statuses]));

test('what a real Traefik has counted is told by service, status and time; web sockets are left out', async () => {
  const { put, tell, count } = await clusterOf();
  put('HTTPRoute', 'other', { spec: {} }, { namespace: 'elsewhere', labels: {} });
  tell(none(BY_INGRESS));
  const { look } = (await count(null))!;
  tell(BY_INGRESS.replace(/^process_start\S+ .*$/m, 'process_start_time_seconds 1'));
  const found = (await count(look))!;
  // Calls of gRPC that fail with UNKNOWN count as 500, in whatever form the gateway names the port.
  expect(statusesOf(found)).toEqual({ a: [0, 79, 0, 2, 1], b: [0, 1, 0, 0, 0] });
  const { latencies } = found.counts!.services.find(({ serviceId }) => serviceId === 'service-a')!;
  expect(latencies.reduce((sum, one) => sum + one, 0)).toBe(82);
  expect(found.problems).toEqual([]);
});

test('a service behind a Gateway is found by the names that Traefik has for HTTPRoutes', async () => {
  const { tell, count } = await clusterOf();
  tell(none(BY_GATEWAY));
  const { look } = (await count(null))!;
  tell(BY_GATEWAY.replace(/^process_start\S+ .*$/m, 'process_start_time_seconds 1'));
  expect(statusesOf(await count(look))).toMatchObject({ b: [0, 115, 0, 2, 0] });
});

test('requests are counted once: since the last look of any process, and never without a look before', async () => {
  const { tell, count } = await clusterOf();
  tell(BY_INGRESS);
  const first = (await count(null))!;
  expect(first.counts).toBeNull();
  tell(more(BY_INGRESS, '404', 3));
  const second = (await count(first.look))!;
  expect(statusesOf(second)).toEqual({ a: [0, 0, 0, 3, 0], b: [0, 0, 0, 0, 0] });
  expect(statusesOf(await count(second.look))).toEqual({ a: [0, 0, 0, 0, 0], b: [0, 0, 0, 0, 0] });
  expect((await count(second.look))!.counts).toBeNull();
  expect((await count('of another process'))!.counts).toBeNull();
});

test('a service that was not looked at, such as a stopped one, does not get its requests of hours when it is back', async () => {
  const { tell, count } = await clusterOf();
  tell(BY_INGRESS);
  const first = (await count(null, ['b']))!;
  const second = (await count(first.look))!;
  expect(statusesOf(second)).toMatchObject({ a: [0, 0, 0, 0, 0] });
  tell(more(BY_INGRESS, '404', 2));
  expect(statusesOf(await count(second.look))).toMatchObject({ a: [0, 0, 0, 2, 0] });
});

test('a look of minutes ago is not counted on from: one minute would get the requests of hours', async () => {
  const { tell, count } = await clusterOf();
  tell(BY_INGRESS);
  const { look } = (await count(null))!;
  const now = Date.now();
  vi.spyOn(Date, 'now').mockReturnValue(now + 181_000);
  onTestFinished(() => void vi.restoreAllMocks());
  expect((await count(look))!.counts).toBeNull();
});

test('a gateway that was started again, and pods that came since, are counted from their start', async () => {
  const { tell, count, addPod, api } = await clusterOf();
  tell(more(BY_INGRESS, '404', 100));
  const first = (await count(null))!;
  tell(restarted(BY_INGRESS));
  const second = (await count(first.look))!;
  expect(statusesOf(second)).toMatchObject({ a: [0, 79, 0, 2, 1] });
  addPod(['traefik', 'two'], new Date().toISOString());
  tell(BY_INGRESS, 'traefik', 'two');
  const third = (await count(second.look))!;
  expect(statusesOf(third)).toMatchObject({ a: [0, 79, 0, 2, 1] });
  // An old pod that was not seen before, such as one with a new label, has counted for months.
  addPod(['traefik', 'three']);
  tell(BY_INGRESS, 'traefik', 'three');
  api.objects.delete(`${pathOf('Pod')}/two`);
  expect(statusesOf(await count(third.look))).toMatchObject({ a: [0, 0, 0, 0, 0] });
});

test('a pod that cannot be read is told, and what it has counted meanwhile is added once it can', async () => {
  const pods: [string, string][] = [['traefik', 'one'], ['traefik', 'two']]; // prettier-ignore
  const { tell, count, api } = await clusterOf({ pods });
  tell(BY_INGRESS);
  tell(BY_INGRESS, 'traefik', 'two');
  const first = (await count(null))!;
  tell(more(BY_INGRESS, '404', 1));
  tell(more(BY_INGRESS, '404', 10), 'traefik', 'two');
  api.refuse = (call) => (call.includes('two:9100') ? 503 : null);
  const second = (await count(first.look))!;
  expect(second.problems).toEqual([
    expect.stringMatching(/^The metrics of the pod traefik\/two cannot be read at its port 9100: The cluster refused/),
  ]);
  expect(statusesOf(second)).toMatchObject({ a: [0, 0, 0, 1, 0] });
  api.refuse = () => null;
  expect(statusesOf(await count(second.look))).toMatchObject({ a: [0, 0, 0, 10, 0] });
});

test('a cluster whose gateway is another, or has no pod, is not counted; a text that is no metrics is refused', async () => {
  const other = await clusterOf({ controller: 'gateway.envoyproxy.io' });
  expect(await other.count(null)).toBeNull();
  const empty = await clusterOf({ pods: [] });
  expect(await empty.count(null)).toBeNull();
  const wrong = await clusterOf();
  wrong.tell('traefik_service_requests_total{ 1');
  await expect(wrong.count(null)).rejects.toThrow('which is no metric');
  wrong.tell('<html>\nNot here.\n');
  await expect(wrong.count(null)).rejects.toThrow('at its port 9100: it answers no metrics of Traefik.');
});

test('an account that may not read the metrics is told apart from a cluster that is away', async () => {
  const { tell, count, api } = await clusterOf();
  tell(BY_INGRESS);
  api.refuse = (call) => (call.includes('/proxy/') ? 403 : null);
  await expect(count(null)).rejects.toMatchObject({ code: 'refused' });
  api.refuse = (call) => (call.includes('gatewayclasses') ? 403 : null);
  await expect(count(null)).rejects.toMatchObject({ code: 'refused' });
});

test('a user can count nothing for others: neither by a pod that calls itself a gateway nor by labels of routes', async () => {
  const { tell, count, api } = await clusterOf({ pods: [[namespaceOf('a'), 'mine']] });
  tell(BY_INGRESS, namespaceOf('a'), 'mine');
  expect(await count(null)).toBeNull();
  expect(api.calls.filter((call) => call.includes('/proxy/'))).toEqual([]);
  const forged = await clusterOf();
  forged.route('b', 'forged', namespaceOf('a'));
  const text = BY_GATEWAY.replaceAll(namespaceOf('b'), namespaceOf('a'));
  forged.tell(text);
  const { look } = (await forged.count(null))!;
  forged.tell(more(text, '200', 5));
  expect(statusesOf(await forged.count(look))).toMatchObject({ b: [0, 0, 0, 0, 0] });
});

test('a service that is reached through another gateway as well is not counted in part', async () => {
  const { put, tell, count } = await clusterOf();
  put('GatewayClass', 'envoy', { spec: { controllerName: 'gateway.envoyproxy.io/gatewayclass-controller' } });
  put('Gateway', 'second', { spec: { gatewayClassName: 'envoy' } }, { namespace: 'edge' });
  const parentRefs = ['public', 'second'].map((name) => ({ kind: 'Gateway', namespace: 'edge', name }));
  put('HTTPRoute', 'a-b', { spec: { parentRefs, rules: [] } }, { namespace: namespaceOf('b'), labels: { [LABEL.installation]: 'test', [LABEL.service]: 'service-b' } }); // prettier-ignore
  tell(BY_INGRESS);
  const { look } = (await count(null))!;
  expect(Object.keys(statusesOf(await count(look)))).toEqual(['a']);
});

test.each([
  [
    {},
    [
      {
        ports: [
          { name: 'web', containerPort: 8000 },
          { name: 'metrics', containerPort: 9200 },
        ],
      },
    ],
    9200,
  ],
  [{ 'prometheus.io/port': '8082' }, [{ ports: [{ name: 'metrics', containerPort: 9100 }] }], 9100],
  [{ 'prometheus.io/port': '8082' }, [{}], 8082],
  [{ 'prometheus.io/port': '1/../../x' }, [{}], 9100],
])(
  'the port of metrics is the one of that name, then the annotated one, then that of the chart: %j %j',
  async (annotations, containers, port) => {
    const { put, tell, count } = await clusterOf({ pods: [] });
    put('Pod', 'one', { status: { phase: 'Running' }, spec: { containers } }, { namespace: 'traefik', labels: { 'app.kubernetes.io/name': 'traefik' }, annotations }); // prettier-ignore
    tell(BY_INGRESS, 'traefik', 'one', port);
    expect(await count(null)).toMatchObject({ problems: [] });
  },
);

test('a check of the cluster explains why requests are not counted, and is silent where they are or cannot be', async () => {
  const sound = await clusterOf();
  sound.tell(BY_INGRESS);
  expect(await uncountedReasons(sound.cluster)).toEqual([]);
  expect(await uncountedReasons((await clusterOf({ controller: 'gateway.envoyproxy.io' })).cluster)).toEqual([]);
  expect(await uncountedReasons((await clusterOf({ pods: [] })).cluster)).toEqual([
    'Requests are not counted: no pod of Traefik runs with the label `app.kubernetes.io/name=traefik` outside of environments.',
  ]);
  expect(await uncountedReasons((await clusterOf()).cluster)).toEqual([
    expect.stringMatching(
      /^Requests are not counted: The metrics of the pod traefik\/one cannot be read at its port 9100: /,
    ),
  ]);
  const many = Array.from({ length: 65 }, (_, n): [string, string] => ['traefik', `pod-${n}`]);
  expect(await uncountedReasons((await clusterOf({ pods: many })).cluster)).toEqual([
    'Requests are not counted: 65 pods of Traefik are more than the 64 whose requests can be counted.',
  ]);
  const poor = await clusterOf();
  poor.api.refuse = (call) => (call.includes('/proxy/') ? 403 : null);
  expect(await uncountedReasons(poor.cluster)).toEqual([]);
});
