import { inject } from 'vitest';
import { testFailingCandidates, testReleases, testRestarts } from './scenarios.ts';
import { useStage } from './use-stage.ts';

const stage = useStage(() => ({
  QUARTERDECK_RUNTIME: 'docker',
  DOCKER_HOST: `unix://${inject('docker').socketPath}`,
}));

testReleases(stage);
testFailingCandidates(stage);
testRestarts(stage);
