-- State of the certificates that the proxy obtains for custom domains, as the node that routes them reports it.
alter table custom_domain
  add column certificate_state text check (certificate_state in ('UNSUPPORTED', 'PENDING', 'ISSUED', 'FAILED')),
  add column certificate_expires_at timestamptz,
  -- Reason of the last failed attempt.
  add column certificate_error text;
