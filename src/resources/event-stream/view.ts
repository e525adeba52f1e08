import {
  deploymentState,
  detailsOf,
  executionIdOf,
  type DeploymentAction,
  type DeploymentLine,
  type State,
} from '#deployments/index.ts';
import type { StreamItem, StreamRow } from '#platform/events/stream.ts';
import { serialize } from '#platform/http/compile.ts';
import { block } from '#platform/http/server-sent-events.ts';
import { Event, toEventView } from '#resources/event/index.ts';
import {
  DeploymentEvent,
  LogEvent,
  ResetEvent,
  ServiceStateEvent,
  ServiceWarningEvent,
  StepEvent,
} from '#resources/event-stream/schema.ts';

const MESSAGES = {
  REMOVED:
    'Events between the last one that you read and now are no longer kept: read the state anew, the stream goes on from now.',
  RESTORED:
    'The database was restored since the last event that you read: read the state anew, the stream goes on from now.',
};

/** Returns the event that tells of missing events. */
export const reset = ({ cursor, missing }: Required<Pick<StreamItem, 'cursor' | 'missing'>>): string =>
  block('reset', serialize(ResetEvent, { reason: missing, message: MESSAGES[missing] }), cursor);

const texts = new WeakMap<StreamRow, string>();

/** Returns the text of an event, made once for all streams that carry it; null if its subject is gone. */
export function textOf(row: StreamRow, cursor: string): string | null {
  let text = texts.get(row);
  if (text === undefined) {
    const data = dataOf(row);
    texts.set(row, (text = data === null ? '' : block(row.type, data, cursor)));
  }
  return text || null;
}

/** The text of log lines; null where none of them is wanted. */
export const logText = (row: StreamRow, cursor: string, lines: DeploymentLine[]): string | null =>
  lines.length === 0
    ? null
    : block('log', serialize(LogEvent, { ...placeOf(row), lines: lines.map(toLineView) }), cursor);

const toLineView = (line: DeploymentLine) => ({
  timestamp: line.at,
  service_id: line.serviceId,
  step: line.step,
  message: line.text,
  error: line.error ?? false,
});

function dataOf(row: StreamRow): string | null {
  switch (row.type) {
    case 'deployment':
      return serialize(DeploymentEvent, toDeploymentView(row));
    case 'service-state':
      return serialize(ServiceStateEvent, toServiceStateView(row));
    case 'service-warning':
      return serialize(ServiceWarningEvent, toServiceWarningView(row));
    case 'step':
      return serialize(StepEvent, toStepView(row));
    case 'audit':
      return row.audit === null ? null : serialize(Event, toEventView({ ...row.audit, at: row.at }));
    case 'log':
      return null;
  }
}

const placeOf = (row: StreamRow) => ({
  at: row.at.toISOString(),
  organization_id: row.organization_id,
  project_id: row.project_id,
  ...(row.project_name === null ? {} : { project_name: row.project_name }),
  environment_id: row.environment_id,
  ...(row.environment_name === null ? {} : { environment_name: row.environment_name }),
  deployment_request_id: row.deployment_id,
  execution_id: executionIdOf(row.environment_id!, row.data.number),
});

const toDeploymentView = (row: StreamRow) => ({
  ...placeOf(row),
  action: row.data.action,
  trigger_action: row.data.trigger,
  status: deploymentState({ ...row.data, cancel_requested_at: row.data.canceling ? row.at : null }),
});

const serviceOf = (row: StreamRow, name: string) => ({ id: row.service_id, name, service_type: row.data.kind });

const toServiceStateView = (row: StreamRow) => ({
  ...placeOf(row),
  service: serviceOf(row, row.data.name),
  state: row.data.state,
  status_details: detailsOf(row.data.action as DeploymentAction, row.data.state as State, row.data.sub_action),
});

const toServiceWarningView = (row: StreamRow) => ({
  at: row.at.toISOString(),
  organization_id: row.organization_id,
  project_id: row.project_id,
  environment_id: row.environment_id,
  service: serviceOf(row, row.data.name),
  code: row.data.code,
  message: row.data.message,
});

const toStepView = (row: StreamRow) => ({
  ...placeOf(row),
  service: serviceOf(row, row.data.service),
  step_name: row.data.name,
  status: row.data.status === 'STARTED' ? 'ONGOING' : row.data.status,
  started_at: new Date(row.data.started_at).toISOString(),
  ended_at: row.data.ended_at === null ? null : new Date(row.data.ended_at).toISOString(),
});
