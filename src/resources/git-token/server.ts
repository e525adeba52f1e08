/**
 * Tells whether an address is of the server that serves an API: the same protocol, host and port, where the host of the API may have `api.` in
 * front. Another port of a host is another server, and over http a token can be read.
 */
export const isServerOf = (api: URL, address: URL): boolean =>
  (address.hostname === api.hostname || `api.${address.hostname}` === api.hostname) &&
  address.port === api.port &&
  address.protocol === api.protocol;
