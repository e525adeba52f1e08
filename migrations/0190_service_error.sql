-- Why a service came to no good end, beside the message: a code for programs, and the step.
alter table deployment_service add column error_code text;
alter table deployment_service add column error_step text;
