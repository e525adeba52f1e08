-- A deployment that goes takes its reports with it: without this each one reads all of them.
create index build_report_deployment on build_report (deployment_id);
