// The states of a service in a deployment (docs/states.md), from the table of transitions.
import { writeFileSync } from 'node:fs';
import { statesPage } from './states-page.ts';

writeFileSync('docs/states.md', statesPage());
