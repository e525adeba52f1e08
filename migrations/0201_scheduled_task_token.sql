-- Token of the process that runs a recurring task: one whose time was over writes nothing over the end of the next.

alter table scheduled_task add column lock_token uuid;
