/** Returns the addresses that a host may be connected at. Throws an error for people if one of them is forbidden. */
export type AddressPolicy = (host: string) => Promise<string[]>;
