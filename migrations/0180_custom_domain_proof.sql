-- breaking
-- Custom domains are routed once a TXT record shows that the organization controls them. Several organizations may wait for the
-- proof of one name; only one has it proven.

-- Makes the values of an organization's TXT records: public, stable for a name, and different for every organization.
alter table organization add column domain_key uuid not null default gen_random_uuid();

alter table custom_domain
  add column challenge text,
  add column proof_state text not null default 'PENDING' check (proof_state in ('PENDING', 'VALIDATED', 'EXPIRED', 'LOST')),
  -- When the present name was claimed: a claim without proof expires.
  add column claimed_at timestamptz not null default now(),
  add column proof_checked_at timestamptz,
  add column proven_at timestamptz,
  -- Since when the record of a proven name is gone.
  add column proof_missing_since timestamptz,
  add column proof_error text;

update custom_domain set challenge = left(encode(sha256(convert_to(organization.domain_key || '/' || custom_domain.domain, 'UTF8')), 'hex'), 40)
from organization where organization.id = custom_domain.organization_id;
alter table custom_domain alter column challenge set not null;

drop index custom_domain_name;
create unique index custom_domain_proven on custom_domain (domain) where proof_state = 'VALIDATED';
create unique index custom_domain_claim on custom_domain (organization_id, domain);
create index custom_domain_check on custom_domain (proof_checked_at) where proof_state in ('PENDING', 'VALIDATED');

-- Custom domains that a service's workload was last applied with: a name that another service has proven since must be given up.
create table routed_domain (
  organization_id uuid not null,
  service_id uuid not null,
  domain text not null,
  primary key (service_id, domain),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index routed_domain_name on routed_domain (domain);
