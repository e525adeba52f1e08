-- The fence of a claim as one call, and what a forced cancel leaves behind until it is known to be gone.

-- Holds the claim on a deployment to the end of the transaction, and says whether it is to be cancelled. Fails where the token is not the
-- claim's any more: everything that was written in the same transaction is undone (engine.md, The queue).
create function hold_claim(organization uuid, deployment_id uuid, token uuid) returns boolean language plpgsql as $$
declare
  cancel boolean;
begin
  select cancel_requested_at is not null into cancel from deployment
    where organization_id = organization and id = deployment_id and claim_token = token and status <> 'ENDED' for update;
  if not found then
    raise exception 'the claim on the deployment is lost' using errcode = 'QD002';
  end if;
  return cancel;
end $$;

alter table deployment
  -- Worker that was at work when the deployment was cancelled by force, until it says that it has stopped or is known to be dead:
  -- nothing else begins in the environment before.
  add column leftover_worker bigint,
  add column leftover_until timestamptz;
create index deployment_leftover on deployment (environment_id) where leftover_worker is not null;
