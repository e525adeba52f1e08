-- End of the credentials of a kubeconfig; null where none is known. It is that of the text that was stored at `end_read_at`: the text is
-- encrypted, and is read again once a later one has taken its place.
alter table cluster_secret add column ends_at timestamptz, add column end_read_at timestamptz;
