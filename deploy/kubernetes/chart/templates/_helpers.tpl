{{- define "sandpit.name" -}}
{{- if contains "sandpit" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-sandpit" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* What is in a namespace where other releases have theirs, too. */}}
{{- define "sandpit.elsewhere" -}}
{{ printf "%s-%s" .Release.Namespace (include "sandpit.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sandpit.selector" -}}
app.kubernetes.io/name: sandpit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sandpit.labels" -}}
{{ include "sandpit.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
{{- end }}

{{- define "sandpit.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "sandpit.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "sandpit.space" -}}
{{ .Values.sandboxes.namespace | default .Release.Namespace }}
{{- end }}

{{- define "sandpit.secret" -}}
{{ .Values.adminToken.existingSecret | default (printf "%s-admin" (include "sandpit.name" .)) }}
{{- end }}

{{- define "sandpit.claim" -}}
{{ .Values.persistence.existingClaim | default (include "sandpit.name" .) }}
{{- end }}

{{- define "sandpit.image" -}}
{{- $repository := .Values.image.repository | default (printf "%s/server" (.Values.registry | default "localhost/sandpit")) }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}{{ else }}{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}{{ end }}
{{- end }}

{{- /* The server's file: what the chart knows, and what the values say beside and before it. */}}
{{- define "sandpit.config" -}}
{{- $name := include "sandpit.name" . }}
{{- $service := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) }}
{{- $hosts := concat $service (ternary (list .Values.ingress.host) (list) (and .Values.ingress.enabled (ne .Values.ingress.host ""))) .Values.hosts }}
{{- $cluster := dict "kubeconfig" "in-cluster" "namespace" (include "sandpit.space" .) "reach" .Values.sandboxes.reach "overcommit" .Values.sandboxes.overcommit "user_namespaces" .Values.sandboxes.userNamespaces }}
{{- with .Values.registry }}{{ $_ := set $cluster "registry" . }}{{ end }}
{{- with .Values.sandboxes.storageClass }}{{ $_ := set $cluster "storage_class" . }}{{ end }}
{{- with .Values.sandboxes.runtimeClass }}{{ $_ := set $cluster "runtime_class" . }}{{ end }}
{{- with .Values.sandboxes.nodeSelector }}{{ $_ := set $cluster "node_selector" . }}{{ end }}
{{- with .Values.sandboxes.tolerations }}{{ $_ := set $cluster "tolerations" . }}{{ end }}
{{- with .Values.sandboxes.pullSecrets }}{{ $_ := set $cluster "pull_secrets" . }}{{ end }}
{{- $images := dict "default" .Values.defaultImage }}
{{- with .Values.registries }}{{ $_ := set $images "registries" . }}{{ end }}
{{- $public := list "connect" "openapi" }}
{{- if .Values.metrics.scrape }}{{ $public = append $public "metrics" }}{{ end }}
{{- $pools := ternary (list (dict "min" .Values.sandboxes.pool)) (list) (gt (int .Values.sandboxes.pool) 0) }}
{{- $config := dict "listen" ":8080" "runtimes" (list "kubernetes") "hosts" $hosts "public" $public "pools" $pools "images" $images "kubernetes" (mergeOverwrite $cluster (deepCopy .Values.sandboxes.more)) }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}
