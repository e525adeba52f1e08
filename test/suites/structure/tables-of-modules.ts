/** Tables by the module that owns them. Other modules' SQL names them only by the exceptions below. */
export const OWNERS: Record<string, string[]> = {
  'delivery/alerts': ['alert_incident', 'alert_message'],
  'delivery/stream': ['stream_event', 'stream_state'],
  'delivery/webhooks': ['webhook_attempt', 'webhook_delivery'],
  deployments: [
    'cron_schedule',
    'deployment',
    'deployment_log',
    'deployment_service',
    'deployment_step',
    'failed_instance_log',
    'job_execution',
    'job_execution_log',
    'queue_finding',
    'release',
    'service_warning',
  ],
  housekeeping: ['disk_use', 'node_disk', 'tombstone'],
  'platform/access': ['access_version', 'rate_window', 'sign_in_session', 'user_account'],
  'platform/copies': ['installation_copy'],
  'platform/database': ['schema_migration'],
  'platform/events': ['audit_chain', 'audit_event', 'audit_seal', 'audit_target', 'audit_unsealed', 'outbox'],
  'platform/http': ['idempotency_record'],
  'platform/installation': ['installation', 'node'],
  'platform/mail-queue': ['mail'],
  'platform/work': ['scheduled_task'],
  'resources/alert-receiver': ['alert_receiver'],
  'resources/alert-rule': ['alert_rule', 'alert_rule_receiver'],
  'resources/api-token': ['api_token', 'api_token_organization'],
  'resources/argo-cd': ['argo_cd', 'argo_cd_mapping'],
  'resources/billing': ['billing_info'],
  'resources/cluster': [
    'cluster',
    'cluster_log',
    'cluster_remains',
    'cluster_secret',
    'cluster_work',
    'secret_manager_access',
  ],
  'resources/credentials': ['credentials'],
  'resources/deployment-rule': ['environment_deployment_rule', 'project_deployment_rule'],
  'resources/deployment-stage': ['deployment_stage'],
  'resources/enterprise-connection': ['enterprise_connection', 'enterprise_group', 'enterprise_sign_in'],
  'resources/environment': ['environment'],
  'resources/git-token': ['git_token'],
  'resources/helm-repository': ['helm_repository'],
  'resources/mcp-server': ['mcp_server'],
  'resources/member': ['member', 'member_invitation'],
  'resources/metadata-group': ['metadata_group'],
  'resources/organization': ['organization'],
  'resources/project': ['project'],
  'resources/registry': ['container_registry', 'registry_webhook'],
  'resources/role': ['role'],
  'resources/sign-in': [
    'address_link',
    'passkey',
    'passkey_challenge',
    'recovery_link',
    'sign_in',
    'sign_in_attempt',
    'sign_in_link',
  ],
  'resources/sign-up': ['sign_up'],
  'resources/webhook': ['webhook'],
  'services/capabilities/environment/history': ['build_report'],
  'services/capabilities/service/custom-domains': ['custom_domain', 'routed_domain'],
  'services/capabilities/service/deployment-restrictions': ['deployment_restriction'],
  'services/capabilities/service/git-webhook': ['git_webhook'],
  'services/capabilities/variables': ['variable', 'variable_secret_version'],
  'services/kinds/agentic-workflow': ['agentic_output', 'agentic_run'],
  'services/kinds/argocd-app': ['argo_cd_destination'],
  'services/kinds/database': [
    'database_backup',
    'database_backup_file',
    'database_fill',
    'database_link',
    'database_restore',
  ],
  'services/kinds/terraform': ['terraform_plan', 'terraform_resource'],
  'services/metrics': ['request_look', 'service_metric', 'service_requests'],
  'services/moved-tags': ['image_tag'],
  'services/pod-logs': ['pod_log'],
  'services/ports': ['published_port'],
  'services/previews': ['preview', 'pull_request', 'pull_request_call', 'pull_request_report'],
  'services/pushes': ['commit_status', 'git_branch', 'git_push'],
  'services/service': ['service'],
  'services/sources': ['source_upload', 'source_upload_part'],
  'services/terraform-state': ['terraform_state', 'terraform_state_version'],
};

export interface Exceptions {
  reason: string;
  /** Tables of other modules, by the module whose SQL names them. */
  uses: Record<string, string[]>;
}

/** Modules whose SQL reads a table of another module. */
export const READS: Exceptions[] = [
  {
    reason:
      'Reads join the names, the scope and the state of what a thing stands in: a call for each row would cost a statement each.',
    uses: {
      cli: ['cluster', 'deployment', 'deployment_stage', 'job_execution', 'node', 'organization', 'service'],
      clusters: ['cluster', 'environment', 'node', 'organization', 'project', 'service'],
      'delivery/alerts': ['environment', 'project', 'service'],
      'delivery/stream': ['environment', 'project'],
      deployments: ['cluster', 'deployment_stage', 'node', 'organization'],
      housekeeping: ['cluster', 'node', 'organization', 'project'],
      'platform/access': ['cluster', 'environment', 'project'],
      'platform/events': ['organization'],
      'resources/alert-rule': ['cluster', 'environment', 'project', 'service'],
      'resources/argo-cd': ['cluster'],
      'resources/cluster': ['environment', 'node', 'project', 'service'],
      'resources/cluster-operator': ['cluster'],
      'resources/deployment-rule': ['cluster', 'environment', 'service'],
      'resources/deployment-stage': ['environment', 'project'],
      'resources/environment': ['cluster', 'project', 'service'],
      'resources/event-stream': ['environment', 'project', 'service'],
      'resources/git-token': ['cluster', 'service'],
      'resources/helm-repository': ['service'],
      'resources/mcp-server': ['service'],
      'resources/member': ['organization'],
      'resources/metadata-group': ['environment', 'project'],
      'resources/organization': ['cluster', 'environment', 'project', 'service'],
      'resources/project': ['environment', 'service'],
      'resources/registry': ['cluster', 'service'],
      'resources/secret-manager-access': ['environment', 'project', 'service'],
      'services/capabilities/environment/actions': ['project', 'service'],
      'services/capabilities/environment/status': ['cluster', 'environment', 'service'],
      'services/capabilities/service/actions': ['cluster', 'deployment_stage', 'environment', 'project'],
      'services/capabilities/service/custom-domains': ['cluster', 'environment', 'organization', 'service'],
      'services/capabilities/service/sockets': ['environment', 'project', 'service'],
      'services/capabilities/variables': ['environment', 'project', 'service'],
      'services/kinds/agentic-workflow': ['service'],
      'services/kinds/argocd-app': ['cluster', 'environment', 'project'],
      'services/kinds/container': ['environment', 'service'],
      'services/kinds/database': ['cluster', 'environment', 'organization'],
      'services/kinds/terraform': ['cluster', 'environment', 'service'],
      'services/metrics': ['environment', 'project', 'service'],
      'services/moved-tags': ['service'],
      'services/pod-logs': ['environment', 'service'],
      'services/ports': ['cluster', 'environment'],
      'services/previews': ['environment'],
      'services/pushes': ['environment', 'organization'],
      'services/service': ['cluster', 'deployment_stage', 'environment', 'project'],
      'services/sources': ['service'],
    },
  },
  {
    reason: 'The inventory names deleted clusters on which something is left, which tombstones tell.',
    uses: {
      clusters: ['cluster_remains', 'tombstone'],
    },
  },
  {
    reason: 'Reads join what was deployed and what is under way.',
    uses: {
      clusters: ['deployment', 'deployment_service', 'service_warning'],
      housekeeping: ['deployment_service'],
      'resources/cluster': ['deployment'],
      'resources/deployment-rule': ['deployment', 'deployment_service'],
      'resources/event-stream': ['deployment', 'deployment_service'],
      'services/capabilities/environment/actions': ['deployment'],
      'services/capabilities/environment/history': ['deployment_service', 'deployment_step'],
      'services/capabilities/service/actions': ['deployment', 'deployment_service'],
      'services/capabilities/service/custom-domains': ['deployment', 'deployment_service'],
      'services/capabilities/variables': ['deployment', 'release'],
      'services/kinds/database': ['deployment'],
      'services/moved-tags': ['deployment', 'deployment_service'],
      'services/pushes': ['deployment', 'deployment_service'],
      'services/kinds/terraform': ['release'],
      'services/service': ['release'],
      'services/sources': ['deployment', 'deployment_service', 'release'],
    },
  },
  {
    reason: 'The view of a node counts in one statement all that runs there and waits for it.',
    uses: {
      clusters: ['cluster_work', 'database_backup', 'database_restore', 'job_execution'],
    },
  },
  {
    reason: 'A consumer of the outbox reads the events that it delivers, and ends what it has delivered.',
    uses: {
      'delivery/stream': ['audit_event'],
    },
  },
  {
    reason: 'What depends on the epoch or the read-only state of the installation reads it in its own statement.',
    uses: {
      'delivery/stream': ['installation'],
      'platform/backup': ['installation'],
      'platform/events': ['installation'],
    },
  },
  {
    reason:
      'Whether an environment may be worked on, and its cluster be reached, is decided within one statement (docs/decisions/0034-claims-lock-one-organization.md).',
    uses: {
      deployments: ['argo_cd', 'cluster_work', 'database_restore'],
    },
  },
  {
    reason: 'Reads join people and their rights: who asks, who made a thing, and who may have it.',
    uses: {
      'platform/access': ['api_token', 'api_token_organization', 'member', 'role'],
      'resources/api-token': ['member', 'role', 'user_account'],
      'resources/member': ['role', 'user_account'],
      'resources/sign-in': ['member', 'organization', 'role', 'sign_in_session'],
      'resources/enterprise-connection': ['role'],
      'resources/role': ['api_token', 'enterprise_connection', 'enterprise_group', 'member', 'member_invitation'],
    },
  },
  {
    reason: 'A token may be limited to a project or an environment of its organization, which it goes with.',
    uses: { 'resources/api-token': ['environment', 'project'] },
  },
  {
    reason:
      'The connection to an Argo CD is a resource, what is read through it a kind: the kind keeps the state of the connection.',
    uses: {
      'resources/argo-cd': ['argo_cd_destination'],
      'services/kinds/argocd-app': ['argo_cd_mapping'],
    },
  },
  {
    reason: 'Reads name what a thing uses, or what uses a thing: a call for each row would cost a statement each.',
    uses: {
      'resources/cluster': ['git_token', 'variable'],
      'resources/organization': ['argo_cd'],
      'resources/secret-manager-access': ['secret_manager_access', 'variable'],
      'services/capabilities/service/git-webhook': ['git_push', 'git_token', 'preview', 'pull_request', 'service'],
      'services/capabilities/variables': ['secret_manager_access'],
      'services/moved-tags': ['container_registry'],
      'services/previews': ['environment_deployment_rule'],
      'services/service': ['container_registry', 'git_token', 'helm_repository'],
      'services/sources': ['git_token'],
    },
  },
  {
    reason: 'The endpoints of events read what the platform writes.',
    uses: {
      'resources/event': ['audit_event', 'audit_target'],
    },
  },
  {
    reason: 'An evaluation of an alert rule measures many services in one statement.',
    uses: {
      'delivery/alerts': [
        'custom_domain',
        'database_backup',
        'deployment_service',
        'job_execution',
        'service_metric',
        'service_requests',
        'service_warning',
      ],
    },
  },
  {
    reason:
      'An evaluation of an alert rule reads what services share: tokens, machines, the queue and the copies (docs/decisions/0120-alert-rules-watch-what-services-share.md).',
    uses: {
      'delivery/alerts': [
        'api_token',
        'cluster',
        'cluster_secret',
        'deployment',
        'git_token',
        'installation',
        'installation_copy',
        'node',
        'node_disk',
        'queue_finding',
      ],
    },
  },
  {
    reason: 'The endpoints of a rule show what its evaluation found and whether that is told, and name its receivers.',
    uses: {
      'resources/alert-rule': ['alert_receiver'],
    },
  },
  {
    reason: 'The endpoints of a webhook show its deliveries and repeat them.',
    uses: {
      'resources/webhook': ['webhook_attempt'],
    },
  },
];

/** Modules whose SQL changes rows of a table of another module. */
export const WRITES: Exceptions[] = [
  {
    reason:
      'An evaluation writes its end into the rule and a delivery its failure into the receiver and into its use by the rule; an edit of a rule forgets what its evaluation found.',
    uses: {
      'delivery/alerts': ['alert_receiver', 'alert_rule', 'alert_rule_receiver'],
      'resources/alert-rule': ['alert_incident', 'alert_message'],
    },
  },
  {
    reason:
      'A push records the newest commit of services in the transaction that requests their deployments; a poll that finds a commit first marks the webhook as silent.',
    uses: {
      'services/pushes': ['git_webhook', 'service'],
    },
  },
  {
    reason: 'Measuring the disk ends the warnings of what has room again, many services in one statement.',
    uses: {
      housekeeping: ['service_warning'],
    },
  },
  {
    reason:
      'An installation that is uninstalled loses all services and environments at once; their tombstones lead to the rest.',
    uses: {
      housekeeping: ['environment', 'service'],
    },
  },
  {
    reason: 'A machine records the address of its API in its own row, which its first start made.',
    uses: {
      'platform/machines': ['node'],
    },
  },
  {
    reason: 'A consumer of the outbox reads the events that it delivers, and ends what it has delivered.',
    uses: {
      'delivery/webhooks': ['outbox', 'webhook'],
    },
  },
  {
    reason:
      'The end of a deployment is one statement: state, facts and versions of what it changed stand or fall together (docs/decisions/0012-a-step-is-one-statement.md).',
    uses: {
      deployments: ['environment', 'project', 'service'],
    },
  },
  {
    reason: 'Retention drops rows of the engine in batches, with the tombstones of what they name.',
    uses: {
      housekeeping: ['cluster_work', 'deployment', 'deployment_log', 'job_execution', 'job_execution_log', 'release'],
    },
  },
  {
    reason: 'A rotation of keys seals anew what is sealed with a data key, wherever it stands.',
    uses: {
      'platform/vault': ['idempotency_record', 'installation', 'organization'],
    },
  },
  {
    reason: 'The account of a person is theirs: its endpoints edit what sign-in made.',
    uses: {
      'resources/account': ['user_account'],
      'resources/sign-in': ['user_account'],
      'resources/sign-up': ['user_account'],
    },
  },
  {
    reason:
      'The connection to an Argo CD is a resource, what is read through it a kind: the kind keeps the state of the connection.',
    uses: {
      'services/kinds/argocd-app': ['argo_cd'],
    },
  },
  {
    reason:
      'Configuration of a service is one row, whose versions each capability and kind moves with what it changes.',
    uses: {
      'resources/deployment-stage': ['service'],
      'services/capabilities/environment/actions': ['environment'],
      'services/capabilities/service/actions': ['service'],
      'services/capabilities/service/advanced-settings': ['service'],
      'services/capabilities/service/clone': ['service'],
      'services/kinds/agentic-workflow': ['environment'],
      'services/kinds/argocd-app': ['service'],
      'services/kinds/database': ['service'],
    },
  },
  {
    reason: 'A new environment has its stages from its first transaction on.',
    uses: {
      'resources/environment': ['deployment_stage'],
    },
  },
  {
    reason: 'What carries a group is out of date when the group changes: its version moves in the same statement.',
    uses: {
      'resources/metadata-group': ['cluster', 'service'],
    },
  },
  {
    reason: 'A new organization has its roles, its owner and a token from its first transaction on.',
    uses: {
      'resources/organization': ['api_token', 'api_token_organization', 'member', 'role', 'user_account'],
    },
  },
  {
    reason: 'The endpoints of a webhook show its deliveries and repeat them.',
    uses: {
      'resources/webhook': ['webhook_delivery'],
    },
  },
];
