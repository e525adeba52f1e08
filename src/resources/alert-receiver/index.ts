export {
  DESTINATION_COLUMNS,
  openDestination,
  type DestinationColumns,
} from '#resources/alert-receiver/destination.ts';
export type { MessagePart } from '#resources/alert-receiver/message.ts';
export { alertReceiverRoutes } from '#resources/alert-receiver/routes.ts';
export { createOutgoing, sendMessage, type Outgoing, type Receipt } from '#resources/alert-receiver/send.ts';
export { SEVERITIES, takesSeverity } from '#resources/alert-receiver/severity.ts';
