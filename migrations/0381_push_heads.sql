-- Pushes whose head is asked for again, polls that a lost call makes due, and ports in the keys of repositories.

alter table git_push
  -- Times that the repository was asked for the head and did not confirm the push.
  add column asks integer not null default 0,
  -- Times in a row that the repository did not answer, and when it was asked last.
  add column failures integer not null default 0,
  add column asked_at timestamptz,
  -- Pushes that the body names, once it is read: the body goes then.
  add column pushes jsonb;
-- Applied pushes that begin at a commit: pushes that end there came late.
create index git_push_succeeded on git_push (organization_id, repository, branch, before_commit)
  where status = 'ENDED' and error is null and before_commit is not null;

alter table git_branch
  -- Calls of the webhook that were lost since the branch was looked at: the next poll is due at once, also where polls are off.
  add column wanted integer not null default 0;

alter table commit_status
  -- Protocol, host and port of the repository's server; null of rows from before: their tokens go to the default port of https only.
  add column origin text;

-- A repository over http or https is `host:port/owner/name` now. Records of sources with a port get the key of the one repository that they stood
-- for; where several shared a key, the webhook is registered anew by the next synchronization, and polls find pushes until then.
create temporary table moved_repository on commit drop as
  with found as (
    select s.organization_id, r ->> 'owner' as owner, r ->> 'name' as name,
      coalesce(
        regexp_match(r ->> 'url', '^(https?|ssh)://(?:[^/@]*@)?(\[[^\]]+\]|[^/:@]+)(?::(\d+))?/', 'i'),
        'ssh'::text || regexp_match(r ->> 'url', '^[\w.-]+@([\w.-]+):(?!//)')
      ) as at
    from service s, jsonb_path_query(s.spec, '$.** ? (exists(@.url) && exists(@.owner) && exists(@.name))') r
  ), keyed as (
    select organization_id, lower(at[2] || '/' || owner || '/' || name) as old,
      lower(at[2] || case when at[3] is null or lower(at[1]) = 'ssh' or (lower(at[1]), at[3]) in (('https', '443'), ('http', '80'))
        then '' else ':' || at[3] end || '/' || owner || '/' || name) as new
    from found where at is not null
  )
  select organization_id, old, min(new) as new from keyed group by organization_id, old having min(new) = max(new) and min(new) <> old;
update git_webhook w set repository = m.new from moved_repository m
  where w.organization_id = m.organization_id and w.repository = m.old;
update git_branch b set repository = m.new from moved_repository m
  where b.organization_id = m.organization_id and b.repository = m.old;
update git_push p set repository = m.new from moved_repository m
  where p.organization_id = m.organization_id and p.repository = m.old;
