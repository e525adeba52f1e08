{{/* Name of all objects of the release. */}}
{{- define "quarterdeck.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "quarterdeck.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "quarterdeck.labels" -}}
{{ include "quarterdeck.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "quarterdeck.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "quarterdeck.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: must be the name of an account, because serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "quarterdeck.databaseSecret" -}}
{{- default (printf "%s-database" (include "quarterdeck.fullname" .)) .Values.database.existingSecret -}}
{{- end }}

{{- define "quarterdeck.vaultSecret" -}}
{{- default (printf "%s-vault" (include "quarterdeck.fullname" .)) .Values.vault.existingSecret -}}
{{- end }}

{{/* Roles that have a Deployment: one with everything for a trial, else the API and the worker apart; one that serves nothing for maintenance. */}}
{{- define "quarterdeck.roles" -}}
{{- ternary "maintenance" (ternary "all" "api worker" .Values.database.trial.enabled) .Values.maintenance -}}
{{- end }}

{{/* Name of the role whose pods answer the API. */}}
{{- define "quarterdeck.apiRole" -}}
{{- ternary "all" "api" .Values.database.trial.enabled -}}
{{- end }}

{{/* Name of the role whose pods carry out deployments. */}}
{{- define "quarterdeck.workerRole" -}}
{{- ternary "all" "worker" .Values.database.trial.enabled -}}
{{- end }}

{{/* Refuses values that contradict each other; the schema cannot say what would be right. */}}
{{- define "quarterdeck.check" -}}
{{- $database := .Values.database -}}
{{- if and (not $database.trial.enabled) (not $database.url) (not $database.existingSecret) -}}
{{- fail "database: set url or existingSecret to a PostgreSQL of your own, or trial.enabled=true for a trial with an embedded one" -}}
{{- end -}}
{{- if and $database.trial.enabled (or $database.url $database.existingSecret) -}}
{{- fail "database.trial.enabled: must be false where database.url or database.existingSecret is set: a trial has a PostgreSQL of its own" -}}
{{- end -}}
{{- if and $database.url $database.existingSecret -}}
{{- fail "database: set url or existingSecret, not both" -}}
{{- end -}}
{{- if and .Values.vault.key .Values.vault.existingSecret -}}
{{- fail "vault: set key or existingSecret, not both" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host: is required with ingress.enabled, such as quarterdeck.example.com" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (or (not .Values.httpRoute.host) (not .Values.httpRoute.parentRefs)) -}}
{{- fail "httpRoute: host and parentRefs are required with httpRoute.enabled; parentRefs names your Gateway, such as [{name: public, namespace: gateway}]" -}}
{{- end -}}
{{- range $name := list "QUARTERDECK_ROLE" "QUARTERDECK_DATA_DIR" "QUARTERDECK_TEMPORARY_DATA" "QUARTERDECK_VAULT_KEY_FILE" "QUARTERDECK_HOST" "QUARTERDECK_PORT" "QUARTERDECK_OPERATIONS_PORT" "QUARTERDECK_TERRAFORM_STATE_PORT" "QUARTERDECK_OWN_CLUSTER" "DATABASE_URL" "DATABASE_DIRECT_URL" -}}
{{- if hasKey $.Values.settings $name -}}
{{- fail (printf "settings.%s: is set by the chart itself: see values.yaml" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}
