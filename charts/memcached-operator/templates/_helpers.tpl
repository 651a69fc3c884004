{{/* The name of everything that is made. It is the operator's name too, so it fits a DNS label with "-lock" behind. */}}
{{- define "memcached-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What the pods are selected by. Never changed: a Deployment's selector cannot be. */}}
{{- define "memcached-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
name: {{ include "memcached-operator.fullname" . }}
{{- end -}}

{{- define "memcached-operator.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "memcached-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "memcached-operator.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name: name the account to use, or leave serviceAccount.create true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "memcached-operator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
Rules of a file of files/, which are copies of manifests/: of the operator's Role those for its Lease (lease: true) or all
others (false).
*/}}
{{- define "memcached-operator.rules" -}}
{{- $rules := list -}}
{{- range (.root.Files.Get (printf "files/%s.yaml" .file) | fromYaml).rules -}}
{{- if or (not (hasKey $ "lease")) (eq $.lease (has "coordination.k8s.io" .apiGroups)) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- $rules | toYaml | replace "memcached-operator-lock" (printf "%s-lock" (include "memcached-operator.fullname" .root)) -}}
{{- end -}}

{{- define "memcached-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "memcached-operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "memcached-operator.validate" -}}
{{- if and .Values.metrics.secure.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.secure.enabled: set metrics.enabled too, there are no metrics to protect" -}}
{{- end -}}
{{- range $part := list "service" "podMonitor" -}}
{{- if and (get $.Values.metrics $part).enabled (not $.Values.metrics.enabled) -}}
{{- fail (printf "metrics.%s.enabled: set metrics.enabled too, there are no metrics to scrape" $part) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.secure.certificateSecret (not .Values.metrics.secure.enabled) -}}
{{- fail "metrics.secure.certificateSecret: set metrics.secure.enabled too, else nothing is served by TLS" -}}
{{- end -}}
{{- if gt (len (include "memcached-operator.fullname" .)) 58 -}}
{{- fail "fullnameOverride: at most 58 characters, the Lease is named by it and -lock" -}}
{{- end -}}
{{- end -}}
