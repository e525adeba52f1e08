-- breaking
-- A release that runs beside this one knows no mark: it would deploy an environment that runs the code of strangers with its secrets.
--
-- Previews of pull requests from forks: who approved which commit, and which environments run the code of strangers.

alter table pull_request
  -- Provider whose call told of it; null if that was before this column.
  add column provider text,
  add column title text,
  -- Name at the provider; null if its calls do not say it.
  add column author text,
  -- Repository of the head, as the provider names it.
  add column head_repository text;

alter table preview
  -- Commit of a fork that may be deployed; null without an approval.
  add column approved_commit text,
  add column approved_by uuid references user_account,
  -- Token that was used; null for a session.
  add column approved_with uuid,
  add column approved_at timestamptz,
  add constraint preview_approval check ((approved_commit is null) = (approved_at is null));

alter table environment
  -- Ref by which the repository of the base has the head of the fork; not null marks an environment that runs the code of strangers.
  add column fork_ref text,
  -- Commit that was approved last: no other one of that ref is deployed.
  add column fork_commit text,
  add constraint environment_fork check ((fork_ref is null) = (fork_commit is null));

-- A head that is no branch was taken for one of the repository: whoever may read a repository at Gitea or Forgejo makes such a pull request.
with stranger as (
  update pull_request set is_fork = true
  where not is_fork and head_branch like 'refs/%' and head_branch not like 'refs/heads/%' and head_branch not like 'refs/tags/%'
  returning id)
update preview set status = 'WAITING', attempts = 0, claim_token = null, lease_until = null, ended_at = null, due_at = now()
where wanted = 'PRESENT' and pull_request_id in (select id from stranger);
