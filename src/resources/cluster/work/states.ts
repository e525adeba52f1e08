import type { EventType } from '#platform/events/audit.ts';
import type { Static } from '#platform/http/schema.ts';
import type { ClusterState as Schema } from '#resources/cluster/schema/status.ts';

type ClusterState = Static<typeof Schema>;

/** Work that can be requested on a cluster. */
export type WorkAction = 'DEPLOY' | 'DRY_RUN' | 'UPGRADE' | 'STOP';

/** Result of work. */
export type WorkEnd = 'succeeded' | 'failed';

interface Course {
  queued: ClusterState;
  running: ClusterState;
  /** State after each end; null leaves the settled state that was before. */
  ends: Record<WorkEnd, ClusterState | null>;
  /** Events of the request, in order, and of the end. */
  requested: EventType[];
  succeeded: EventType;
  failed: EventType;
}

const DEPLOYING: Course = {
  queued: 'DEPLOYMENT_QUEUED',
  running: 'DEPLOYING',
  ends: { succeeded: 'DEPLOYED', failed: 'DEPLOYMENT_ERROR' },
  requested: ['TRIGGER_DEPLOY', 'DEPLOY_QUEUED'],
  succeeded: 'DEPLOYED',
  failed: 'DEPLOY_FAILED',
};

/** The states of a cluster under each kind of work (docs/states.md). A dry run changes nothing. */
export const COURSES: Record<WorkAction, Course> = {
  DEPLOY: DEPLOYING,
  UPGRADE: { ...DEPLOYING, requested: ['MAINTENANCE', 'DEPLOY_QUEUED'] },
  STOP: {
    queued: 'STOP_QUEUED',
    running: 'STOPPING',
    ends: { succeeded: 'STOPPED', failed: 'STOP_ERROR' },
    requested: ['TRIGGER_STOP', 'STOP_QUEUED'],
    succeeded: 'STOPPED',
    failed: 'STOP_FAILED',
  },
  DRY_RUN: {
    queued: 'QUEUED',
    running: 'DRY_RUN',
    ends: { succeeded: null, failed: null },
    requested: ['TRIGGER_DEPLOY_DRY_RUN', 'DRY_RUN'],
    succeeded: 'DEPLOYED_DRY_RUN',
    failed: 'DEPLOYED_DRY_RUN_FAILED',
  },
};
