import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { canHaveCluster } from './test/harness/kubernetes/programs.ts';

/** Settings of all projects. `expect.poll` would give up after one second; a longer limit costs nothing where all goes well. */
const common = {
  pool: 'forks',
  // A test that fails now and then has a cause, in the product or in itself.
  retry: 0,
  // Tests of a contract run beside each other.
  maxConcurrency: 3,
  expect: { poll: { timeout: 40_000 } },
  // Failed assertions print whole values instead of `[ Array(1) ]`.
  chaiConfig: { truncateThreshold: 0 },
} as const;

/** The files that a worker runs share its process and modules: loading them anew for each file took a third of all processor time. */
const shared = {
  isolate: false,
  setupFiles: ['test/harness/left-behind.ts'],
  // One more than cores: tests wait for processes, time limits and PostgreSQL, not for the processor alone.
  maxWorkers: 3,
};

/**
 * Presence of Debian's docker-registry (`.ci/run` installs it). Tests that need a real registry are left out without it, with a warning.
 */
const hasRegistry = ['/usr/bin/docker-registry', '/usr/local/bin/docker-registry'].some((file) => existsSync(file));
if (!hasRegistry) console.warn('Left out: **/*.registry.test.ts, which take the package docker-registry.');

/** Reports whether a program is installed. Tests with Caddy or an ACME server are left out without the programs. */
const isOnPath = (name: string) =>
  [...(process.env.PATH ?? '').split(':'), '/usr/local/bin', '/usr/bin'].some((folder) =>
    existsSync(`${folder}/${name}`),
  );
const hasCaddy = isOnPath('caddy');
const hasPebble = ['pebble', 'pebble-challtestsrv', 'openssl'].every(isOnPath);
if (!hasCaddy) console.warn('Left out: **/*.caddy.test.ts and **/*.pebble.test.ts, which take the package caddy.');
else if (!hasPebble)
  console.warn('Left out: **/*.pebble.test.ts, which take openssl and the programs that `.ci/programs pebble` builds.');

const hasStore = isOnPath('versitygw');
if (!hasStore) console.warn('Left out: **/*.s3.test.ts, which take the store that `.ci/programs versitygw` builds.');

const hasBrowser = ['chromium-headless-shell', 'chromium'].some(isOnPath);
if (!hasBrowser)
  console.warn('Left out: **/*.browser.test.ts, which take the package chromium-headless-shell or chromium.');

const hasKubernetes = canHaveCluster(process.env);
if (!hasKubernetes)
  console.warn(
    'Left out: **/*.kubernetes.test.ts, which take KUBECONFIG, or root, etcd-server, containernetworking-plugins and `.ci/kubernetes`.',
  );

/**
 * Tests of every operation with many requests, tests with more than a thousand deployments, and slow tests. The slow ones wait for minutes
 * to pass, for time limits to run out or for many processes to start.
 */
const EXHAUSTIVE = [
  'test/suites/fuzz.test.ts',
  'test/suites/{answers,ignored-parameters}.test.ts',
  'test/suites/statements.test.ts',
  'test/suites/security/**/*.test.ts',
  'test/suites/cost/**/*.test.ts',
  'test/suites/reads/**/*.test.ts',
  'test/suites/housekeeping/**/*.test.ts',
  'test/suites/kinds/**/*.test.ts',
  'src/services/kinds/job/cron.test.ts',
  'src/services/kinds/terraform/deployed.test.ts',
  'src/services/kinds/terraform/run.test.ts',
  'src/deployments/executor/hung-calls.test.ts',
  'src/deployments/executor/rollouts.test.ts',
  'src/services/pushes/many-pushes.test.ts',
  // Commits to real repositories, with calls in every order.
  'src/services/pushes/{replay,waiting,fairness}.test.ts',
  // A real registry, and deployments from it.
  'src/services/moved-tags/{moved-tags,webhook}.registry.test.ts',
  'src/services/previews/{deployed,git,killed,report}.test.ts',
  // Readers that are slow, and streams that are silent until a comment keeps them open.
  'src/services/capabilities/service/logs/{stream,followed-runs}.test.ts',
  'src/platform/backup/backup.test.ts',
  'src/runtimes/proxy/builtin/handover.test.ts',
  'src/resources/deployment-rule/apply.test.ts',
  'src/runtimes/proxy/*/contract.test.ts',
  'src/runtimes/proxy/*/fuzz.test.ts',
  'test/suites/access.test.ts',
  'test/suites/sockets/metrics.test.ts',
  'test/suites/sockets/frame.test.ts',
  'test/crash/failures.test.ts',
  'src/app/install.test.ts',
  'src/deployments/executor/worker.test.ts',
  'src/resources/event-stream/access.test.ts',
  'src/delivery/webhooks/workers.test.ts',
  'src/platform/database/connections.test.ts',
  'src/platform/database/kept-embedded.test.ts',
  'src/housekeeping/disk-{executions,runs}.test.ts',
  'src/services/capabilities/*/rollback/rollback.test.ts',
  // Seven actions, each carried out; plans of one service are tested in `fast`.
  'src/services/capabilities/environment/deployment-plan/deployment-plan.test.ts',
  'src/services/ports/published-ports.test.ts',
  'src/runtimes/proxy/builtin/router.test.ts',
  'src/runtimes/tools/disk-walk/disk-walk.test.ts',
  'src/platform/vault/rotation.test.ts',
  // Add a kind, or the place of each route, before anything is loaded: take modules of their own.
  'test/suites/structure/ninth-kind.test.ts',
  'test/suites/structure/capability-routes.test.ts',
];

/** Tests that are slow by nature, of parts whose other tests are in `fast`, and of parts that change rarely. */
const SLOW = [
  // Minutes, leases and time limits pass.
  'src/housekeeping/{housekeeping,disk-guard}.test.ts',
  'src/delivery/alerts/{evaluation,alerts,mail}.test.ts',
  'src/delivery/stream/stream.test.ts',
  'src/resources/event-stream/event-stream.test.ts',
  'src/deployments/watchers/*.test.ts',
  'src/deployments/executor/{cancel,lost-images}.test.ts',
  'src/platform/work/loop.test.ts',
  'src/platform/http/body-stream.test.ts',
  'src/services/metrics/sampler.test.ts',
  'src/services/capabilities/service/logs/selection.test.ts',
  'src/app/traces.test.ts',
  'test/suites/{failures,queue/liveness,sockets/following}.test.ts',
  // Real repositories of git, archives, processes and registries.
  'src/runtimes/tools/git/*.test.ts',
  'src/runtimes/tools/shim/shim.test.ts',
  'src/services/{git-repository,terraform-repository}/*.test.ts',
  'src/services/capabilities/service/{folder,commits}/*.test.ts',
  'src/services/previews/*.test.ts',
  'src/services/pushes/killed.test.ts',
  'src/platform/move/archive.test.ts',
  'src/cli/up.test.ts',
  'src/platform/oci/client.registry.test.ts',
  // Passwords, proofs, stores and hostile servers, each with dozens of attempts.
  'src/resources/sign-in/**/*.test.ts',
  'src/resources/secret-manager-access/*.test.ts',
  'src/services/capabilities/service/custom-domains/proof.test.ts',
  'src/platform/mail-client/mail-client.test.ts',
  'src/kernel/{parsing/parsing,secrets-mask}.test.ts',
  'src/services/recognition/hostile.test.ts',
  'src/platform/events/chain/chain.test.ts',
  // Clusters that the tests play, and charts.
  'src/runtimes/fake/{fake,cluster}.test.ts',
  'src/runtimes/kubernetes/{publish,rollout}.test.ts',
  'src/services/kinds/{helm,job,terraform}/{helm,job,terraform}.test.ts',
  'src/services/kinds/argocd-app/*.test.ts',
  'src/services/capabilities/{service/deployment-plan,environment/export}/*.test.ts',
];

/** Tests that need more than `npm test` has, or commands of their own. */
const ELSEWHERE = [
  '**/*.docker.test.ts',
  '**/*.kubernetes.test.ts',
  '**/*.crash.test.ts',
  '**/*.soak.test.ts',
  '**/*.host.test.ts',
  '**/*.machine.test.ts',
  '**/*.program.test.ts',
  '**/*.caddy.test.ts',
  '**/*.pebble.test.ts',
  '**/*.browser.test.ts',
  '**/*.s3.test.ts',
  'src/runtimes/host/**',
  ...EXHAUSTIVE,
  ...(hasRegistry ? [] : ['**/*.registry.test.ts']),
  'node_modules/**',
];

/** `fast` is what `npm test` runs; the other projects take longer or need more, and have commands of their own (scripts/task.mjs). */
export default defineConfig({
  test: {
    // The default leaves a core free; most of our tests wait for processes and disks, not for the processor.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'fast',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...ELSEWHERE, ...SLOW],
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          ...shared,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'slow',
          include: SLOW,
          exclude: ELSEWHERE,
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          ...shared,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'exhaustive',
          include: EXHAUSTIVE,
          exclude: ['**/*.docker.test.ts', '**/*.host.test.ts', '**/*.machine.test.ts'],
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          maxWorkers: 3,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // Processes of the service are killed, frozen and cut off from their database: with the clock in play, one file at a time.
        test: {
          name: 'crash',
          include: ['test/crash/**/*.crash.test.ts'],
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          maxConcurrency: 2,
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        // The random ones of `crash` again, and every single statement, for hours: `npm run test:soak`.
        test: {
          name: 'soak',
          include: ['test/crash/**/random-*.crash.test.ts', 'test/crash/boundaries.crash.test.ts'],
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          fileParallelism: false,
          env: { SOAK: 'true' },
          testTimeout: 6 * 3_600_000,
          hookTimeout: 60_000,
        },
      },
      {
        // These make networks and look at all that the machine has: one file at a time, and nothing beside them.
        test: {
          name: 'host',
          include: ['src/runtimes/host/**/*.test.ts', 'test/**/*.machine.test.ts'],
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // The whole program, started and ended by its command: on the host runtime through minutes of load, and through backups.
        test: {
          name: 'program',
          include: [
            'test/**/*.host.test.ts',
            'src/**/*.host.test.ts',
            'src/**/*.program.test.ts',
            ...(hasCaddy ? ['src/**/*.caddy.test.ts'] : []),
            ...(hasCaddy && hasPebble ? ['src/**/*.pebble.test.ts'] : []),
            ...(hasBrowser ? ['src/**/*.browser.test.ts'] : []),
            ...(hasStore ? ['src/**/*.s3.test.ts'] : []),
          ],
          globalSetup: ['test/harness/global-setup.ts'],
          ...common,
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'docker',
          include: ['src/**/*.docker.test.ts', 'test/**/*.docker.test.ts'],
          globalSetup: ['test/harness/global-setup.ts', 'test/harness/docker-setup.ts'],
          ...common,
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'kubernetes',
          include: hasKubernetes ? ['src/**/*.kubernetes.test.ts', 'test/**/*.kubernetes.test.ts'] : [],
          globalSetup: ['test/harness/global-setup.ts', 'test/harness/kubernetes-setup.ts'],
          ...common,
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
