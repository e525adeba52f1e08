import { parse } from '@cdktn/hcl2json';

/** File name for the parser, with which its messages begin. */
const FILE = 'file';
const DIAGNOSTIC = new RegExp(`^parse config: \\[${FILE}:(\\d+),[\\d,:-]+ ([^]*)\\]$`);

/**
 * Reads Terraform's language with HashiCorp's own parser. Throws Error with the line of the first fault; a RangeError tells that the parser
 * cannot be used any more.
 */
export async function parseHcl(text: string): Promise<unknown> {
  try {
    return await parse(FILE, text);
  } catch (error) {
    const { message } = error as Error;
    const [, line, faults] = DIAGNOSTIC.exec(message) ?? [];
    if (line === undefined) throw new RangeError(message, { cause: error });
    throw new Error(`line ${line}: ${firstOf(faults!)}`, { cause: error });
  }
}

/** Returns the first of several faults, which the parser writes one after the other: `Summary; Detail. file:2,1-3: Summary; …`. */
const firstOf = (faults: string): string => faults.split(new RegExp(` ${FILE}:\\d+,`))[0]!.replace('; ', ': ');
