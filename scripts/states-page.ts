// The page docs/states.md, from the table of transitions. gen-states.ts writes it; a suite compares.
import {
  ACTIONS,
  isFinal,
  next,
  PHASES,
  stateOf,
  STATES,
  TRANSITIONS,
  type DeploymentAction,
  type Phase,
  type Trigger,
} from '#deployments/model/states.ts';
import { table } from './table.ts';

const TRIGGERS = Object.keys(TRANSITIONS) as Trigger[];

/** Meaning of each trigger. */
const MEANING: Record<Trigger, string> = {
  start: 'its deployment starts; its stage is not reached',
  build: 'its stage starts and there is something to build',
  apply: 'its stage starts with nothing to build, or the build has ended',
  execute: 'a job or a Terraform run starts',
  succeed: 'the work has ended well',
  fail: 'the work has failed, or its deadline is over',
  cancel: 'a person or a program asks to cancel it',
  cancelled: 'it has come to a safe point, or an earlier stage has failed',
};

const moves = (): { from: Phase; trigger: Trigger; to: Phase }[] =>
  PHASES.flatMap((from) =>
    TRIGGERS.flatMap((trigger) => {
      const to = next(from, trigger);
      return to ? [{ from, trigger, to }] : [];
    }),
  );

const isEnd = (phase: Phase): boolean => isFinal('DEPLOY', stateOf('DEPLOY', phase));

function drawing(): string {
  const edges = Map.groupBy(moves(), ({ from, to }) => `${from} --> ${to}`);
  return [
    'stateDiagram-v2',
    '    [*] --> queued',
    ...[...edges].map(([edge, all]) => `    ${edge}: ${all.map(({ trigger }) => trigger).join(', ')}`),
    ...PHASES.filter(isEnd).map((phase) => `    ${phase} --> [*]`),
  ].join('\n');
}

const names = (): string =>
  table(
    ['phase', ...ACTIONS],
    PHASES.map((phase) => [phase, ...ACTIONS.map((action) => stateOf(action, phase))]),
  );

const transitions = (): string =>
  table(
    ['from', ...TRIGGERS],
    PHASES.filter((phase) => !isEnd(phase)).map((from) => [
      from,
      ...TRIGGERS.map((trigger) => next(from, trigger) ?? '–'),
    ]),
  );

function unnamed(): string {
  const named = new Set(ACTIONS.flatMap((action: DeploymentAction) => PHASES.map((phase) => stateOf(action, phase))));
  return STATES.filter((state) => !named.has(state))
    .map((state) => `\`${state}\``)
    .join(', ');
}

/** The text of docs/states.md. */
export const statesPage = (): string => `# States

The API shows where a service stands as a state, such as \`DEPLOYED\`. [Names](#names) lists all of them. \`npm run gen\` writes this page from \`src/deployments/model/states.ts\`.

A service in a deployment is in a phase, whatever the action. Its state follows from action and phase. \`moveServices\` in \`src/deployments/queries.ts\` is what writes it: a conditional update, so that a move from a state that has changed meanwhile does nothing.

\`\`\`mermaid
${drawing()}
\`\`\`

## Triggers

${table(
  ['trigger', 'when'],
  TRIGGERS.map((trigger) => [trigger, MEANING[trigger]]),
)}

## Transitions

${transitions()}

The ends are ${PHASES.filter(isEnd).join(', ')}: no trigger leaves them.

## Names

What the API shows, by action:

${names()}

Of the ${STATES.length} states of the API no action and phase has ${unnamed()}. \`READY\` is a service that was never deployed, \`RECAP\` a deployment whose result is being written, \`UNAVAILABLE\` a service whose cluster has not answered for a while. Instances that end by themselves change no state: a service on a followed cluster ([Kubernetes](guides/kubernetes.md#what-you-see)) then has the warning \`INSTANCES_NOT_READY\`.
`;
