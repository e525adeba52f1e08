import { NoAnswer, type ApiClient } from '#cli/api-client.ts';
import { printAside } from '#cli/print.ts';

interface Line {
  details: { transmitter?: { id?: string } };
  message?: { safe_message?: string } | null;
}

/** Part of a status that names the deployment. */
export interface ExecutionStatus {
  deployment_request_id: string | null;
  /** Absent until a deployment has begun. */
  execution_id?: string;
}

/** Service whose lines of a deployment are printed. */
export interface LoggedService {
  id: string;
  environment: { id: string };
}

/** Prints what a deployment's log says of a service, on standard error, as far as it was not printed before. */
export class DeploymentLog {
  readonly #api: ApiClient;
  readonly #service: LoggedService;
  readonly #requestId: string | null;
  #printed = 0;
  #isRefused = false;

  /** `requestId` is the request whose deployment is shown, also after it has joined others. */
  constructor(api: ApiClient, service: LoggedService, requestId: string | null) {
    this.#api = api;
    this.#service = service;
    this.#requestId = requestId;
  }

  /** Prints the new lines, once the deployment is the one that the status tells of. A log that may not be read is told once. */
  async printNew({ deployment_request_id: requestId, execution_id: executionId }: ExecutionStatus): Promise<void> {
    if (this.#isRefused || executionId === undefined || requestId !== this.#requestId) return;
    const environment = encodeURIComponent(this.#service.environment.id);
    try {
      const path = `/environment/${environment}/logs?version=${encodeURIComponent(executionId)}`;
      const lines = await this.#api.call<Line[]>('GET', path);
      const own = lines.filter(({ details }) => details.transmitter?.id === this.#service.id);
      for (const { message } of own.slice(this.#printed)) printAside(`  ${message?.safe_message ?? ''}`);
      this.#printed = own.length;
    } catch (error) {
      // Whoever waits for the end decides how long a service may be away.
      if (error instanceof NoAnswer) return;
      this.#isRefused = true;
      printAside(`The log of the deployment cannot be shown. ${(error as Error).message}`);
    }
  }
}
