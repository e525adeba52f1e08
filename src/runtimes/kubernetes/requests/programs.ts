import type { Controllers } from './controllers.ts';
import type { GatewayProgram } from './gateway-program.ts';
import { TRAEFIK } from './traefik.ts';

/** Gateways whose metrics are read. */
const PROGRAMS: readonly GatewayProgram[] = [TRAEFIK];

/** Returns the gateways of a cluster whose metrics are read. */
export const programsOf = ({ all }: Controllers): GatewayProgram[] =>
  PROGRAMS.filter(({ controllers }) => controllers.some((name) => all.has(name)));
