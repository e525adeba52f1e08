import { AppError } from '#kernel/errors.ts';

/**
 * Error of a request for something that only the named machine can answer: its logs, shells, ports and files. The server sends the request on
 * to that machine; without a way there it is answered 502 (docs/decisions/0065-requests-go-to-the-machine.md).
 */
export class OnOtherMachine extends AppError {
  /** Id of the machine, as in its file `node-id`. */
  readonly machineId: string;

  constructor(machineId: string, reason = `its API is not known here: set QUARTERDECK_MACHINE_URL there`) {
    super('bad_gateway', `This is on the machine ${machineId}, which cannot be asked from here: ${reason}.`);
    this.name = 'OnOtherMachine';
    this.machineId = machineId;
  }
}

/** Returns the machine, or throws `OnOtherMachine` if it is another one than `here`. What is on no machine (null) can be asked from everywhere. */
export function requireMachine<Id extends string | null>(here: string | null, machineId: Id): Id {
  if (machineId !== null && machineId !== here) throw new OnOtherMachine(machineId);
  return machineId;
}
