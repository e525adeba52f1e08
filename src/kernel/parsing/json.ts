import sjson from 'secure-json-parse';

/** Reads JSON without the keys that would change what its objects are. */
export function parseJson(text: string): unknown {
  try {
    return sjson.parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Error(`it is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
