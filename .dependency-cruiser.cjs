// Who may import whom. `npm run check` holds it; see docs for the picture: kernel <- platform <- resources, services,
// deployments, clusters, housekeeping <- app <- cli, main. Tests, fixtures and what only tests use may reach for more: they are exempt from the
// layers, not from the rule that nothing imports them.

const TEST_ONLY = '\\.(test|fixture)\\.ts$|/testing\\.ts$|\\.contract\\.ts$|^src/runtimes/(proxy/)?contract/';
const OURS = '^src/';

/** What all may know of runtimes and of the proxy: their interfaces. */
const INTERFACES = '^src/runtimes/(runtime|router|image-store|former-log-store)\\.ts$';

/** `from` may import, of our own code, only what matches one of `allowed`. */
const only = (name, comment, from, allowed, more = {}) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from, pathNot: TEST_ONLY },
  to: { path: OURS, pathNot: allowed, ...more },
});

const never = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

module.exports = {
  forbidden: [
    only('kernel', 'The kernel imports nothing of ours.', '^src/kernel/', ['^src/kernel/']),
    only('platform', 'The platform knows the kernel only.', '^src/platform/', ['^src/(kernel|platform)/']),
    only('resources', 'Resources know kernel, platform, one another, and what deployments offer.', '^src/resources/', [
      '^src/(kernel|platform|resources)/',
      '^src/deployments/(index\\.ts$|model/)',
      '^src/runtimes/runtime\\.ts$',
    ]),
    only('services', 'Services know what resources and deployments offer.', '^src/services/', [
      '^src/(kernel|platform|services|resources)/',
      '^src/deployments/(index\\.ts$|model/)',
      INTERFACES,
    ]),
    only('clusters', 'Clusters know what resources and deployments offer, and no services.', '^src/clusters/', [
      '^src/(kernel|platform|clusters|resources)/',
      '^src/deployments/(index\\.ts$|model/)',
      INTERFACES,
    ]),
    only('housekeeping', 'Housekeeping works on the database and on runtimes that it is given.', '^src/housekeeping/', [
      '^src/(kernel|platform|housekeeping)/',
      '^src/deployments/(index\\.ts$|model/)',
      INTERFACES,
    ]),
    never(
      'clusters-and-housekeeping-uncalled',
      'Clusters and housekeeping are started by what puts the program together.',
      { path: OURS, pathNot: `^src/(clusters|housekeeping|app|cli)/|${TEST_ONLY}` },
      { path: '^src/(clusters|housekeeping)/' },
    ),
    only('deployments', 'The engine knows neither services nor resources nor a single runtime.', '^src/deployments/', [
      '^src/(kernel|platform|deployments)/',
      '^src/runtimes/runtime\\.ts$',
    ]),
    only('planner', 'The planner is pure: no database, no clock, no input or output.', '^src/deployments/planner/', [
      '^src/kernel/',
      '^src/deployments/(planner|model)/',
      '^src/runtimes/runtime\\.ts$',
    ]),
    never(
      'planner-pure',
      'The planner imports no library that does anything.',
      { path: '^src/deployments/planner/' },
      {
        path: 'node_modules',
      },
    ),
    only('delivery', 'Delivery reads events; of resources it knows what webhooks and alerts are.', '^src/delivery/', [
      '^src/(kernel|platform|delivery)/',
      '^src/resources/(webhook|alert-rule|alert-receiver)/index\\.ts$',
    ]),
    never(
      'delivery-uncalled',
      'Nobody calls delivery but what starts it.',
      { path: OURS, pathNot: '^src/(delivery|app)/' },
      {
        path: '^src/delivery/',
      },
    ),
    only('runtimes', 'Runtimes know the kernel only: they can be used without a database.', '^src/runtimes/', [
      '^src/(kernel|runtimes)/',
    ]),
    never(
      'capabilities',
      'Capabilities are written for every kind: mount.ts joins them.',
      { path: '^src/services/capabilities/', pathNot: TEST_ONLY },
      { path: '^src/services/kinds/' },
    ),
    never(
      'capabilities-of-services',
      'What a service can do is complete without its environment, whose capabilities act on services.',
      { path: '^src/services/capabilities/(service|variables)/' },
      { path: '^src/services/capabilities/environment/' },
    ),
    never(
      'variables',
      'Projects, environments and services have variables: they know no other capability.',
      { path: '^src/services/capabilities/variables/', pathNot: TEST_ONLY },
      { path: '^src/services/capabilities/', pathNot: '^src/services/capabilities/variables/' },
    ),
    never(
      'one-runtime',
      'A runtime is chosen by app/; everybody else knows runtime.ts, router.ts, image-store.ts and former-log-store.ts of runtimes.',
      { path: OURS, pathNot: `^src/(app|runtimes)/|${TEST_ONLY}` },
      { path: '^src/runtimes/', pathNot: INTERFACES },
    ),
    never(
      'runtime-to-runtime',
      'Runtimes share tools, never one another.',
      { path: '^src/runtimes/(docker|host|kubernetes|fake|proxy)/', pathNot: TEST_ONLY },
      { path: '^src/runtimes/(docker|host|kubernetes|fake|proxy)/', pathNot: '^src/runtimes/$1/' },
    ),
    never(
      'resource-folders',
      'A folder of resources is entered through index.ts, or target.ts for its address.',
      { path: '^src/resources/([^/]+)/', pathNot: TEST_ONLY },
      { path: '^src/resources/', pathNot: ['^src/resources/$1/', '^src/resources/[^/]+/(index|target)\\.ts$'] },
    ),
    never(
      'resource-doors',
      'A folder of resources is entered through index.ts, target.ts or bootstrap.ts.',
      { path: '^src/', pathNot: `^src/resources/|${TEST_ONLY}` },
      { path: '^src/resources/', pathNot: '^src/resources/[^/]+/(index|target|bootstrap)\\.ts$' },
    ),
    never(
      'layers-in-a-folder',
      'routes -> service -> queries: SQL knows nothing of what calls it.',
      { path: '^src/(resources|services)/.*queries\\.ts$' },
      { path: '^src/(resources|services)/.*(routes|service)\\.ts$' },
    ),
    never(
      'app-on-top',
      'Nothing below imports what puts the program together.',
      { path: '^src/', pathNot: `^src/(app|cli|main\\.ts)|${TEST_ONLY}` },
      { path: '^src/(app|cli|main\\.ts)' },
    ),
    never('cli-on-top', 'app/ knows no command line.', { path: '^src/app/' }, { path: '^src/cli/' }),
    never(
      'tests-stay-tests',
      'What runs imports nothing that is made for tests.',
      { path: OURS, pathNot: TEST_ONLY },
      { path: `${TEST_ONLY}|^test/|^bench/|^scripts/` },
    ),
    never('no-cycles', 'Imports go one way.', { path: OURS }, { circular: true }),
    never('resolvable', 'Every import leads somewhere.', {}, { couldNotResolve: true }),
    never(
      'declared',
      'What runs imports declared dependencies only.',
      { path: OURS, pathNot: TEST_ONLY },
      {
        dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'npm-dev'],
        dependencyTypesNot: ['type-only'],
      },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    moduleSystems: ['es6'],
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    // `#folder/…` is read from `imports` of package.json; every path names its .ts file.
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
