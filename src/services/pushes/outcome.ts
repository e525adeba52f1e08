/** Result of a push for a service that follows its branch. */
export interface ServiceOutcome {
  serviceId: string;
  result: 'DEPLOYED' | 'NOTED' | 'NOT_AFFECTED' | 'SKIPPED' | 'NOT_RUNNING' | 'KNOWN' | 'REFUSED' | 'PUT_OFF';
  /** Reason, for people, where it is not what the result says. */
  message?: string;
}
