import { testFailingCandidates, testReleases, testRestarts } from './scenarios.ts';
import { useStage } from './use-stage.ts';

const stage = useStage(() => ({ QUARTERDECK_RUNTIME: 'host' }));

testReleases(stage);
testFailingCandidates(stage);
testRestarts(stage);
