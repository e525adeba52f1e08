-- Alert receivers that get mail.

alter table alert_receiver
  drop constraint alert_receiver_type_check,
  alter column webhook_url drop not null,
  -- Addresses, separated by commas.
  add column mail_to text,
  add column mail_from text,
  -- Server that takes the mail, as host:port.
  add column smarthost text,
  add column auth_username text,
  -- Encrypted.
  add column auth_password bytea,
  add column require_tls boolean,
  add constraint alert_receiver_destination check (case type
    when 'SLACK' then webhook_url is not null
      and num_nonnulls(mail_to, mail_from, smarthost, auth_username, auth_password, require_tls) = 0
    when 'EMAIL' then webhook_url is null and num_nonnulls(mail_to, mail_from, smarthost, require_tls) = 4
      and num_nonnulls(auth_username, auth_password) <> 1
    else false
  end);
