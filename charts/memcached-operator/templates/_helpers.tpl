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
app.kubernetes.io/name: {{ .Chart.Name | quote }}
name: {{ include "memcached-operator.fullname" . | quote }}
{{- end -}}

{{- define "memcached-operator.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") | quote }}
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
  name: {{ include "memcached-operator.serviceAccountName" . | quote }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}

{{- define "memcached-operator.validate" -}}
{{- if and .Values.metrics.secure.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.secure.enabled: set metrics.enabled too, there are no metrics to protect" -}}
{{- end -}}
{{- $uses := dict "service" "scrape" "podMonitor" "scrape" "prometheusRule" "alert on" "dashboard" "show" -}}
{{- range $part, $use := $uses -}}
{{- if and (get $.Values.metrics $part).enabled (not $.Values.metrics.enabled) -}}
{{- fail (printf "metrics.%s.enabled: set metrics.enabled too, there are no metrics to %s" $part $use) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.secure.certificateSecret (not .Values.metrics.secure.enabled) -}}
{{- fail "metrics.secure.certificateSecret: set metrics.secure.enabled too, else nothing is served by TLS" -}}
{{- end -}}
{{- if gt (len (include "memcached-operator.fullname" .)) 58 -}}
{{- fail "fullnameOverride: at most 58 characters, the Lease is named by it and -lock" -}}
{{- end -}}
{{- include "memcached-operator.validateSelector" . -}}
{{- include "memcached-operator.validateSettings" . -}}
{{- end -}}

{{/* The selector's labels are the chart's: with another value the Deployment would not find its own pods. */}}
{{- define "memcached-operator.validateSelector" -}}
{{- range $label, $value := include "memcached-operator.selectorLabels" . | fromYaml -}}
{{- if hasKey ($.Values.podLabels | default dict) $label -}}
{{- $remedy := ternary "set fullnameOverride instead" "leave it out, or take a label of another name" (eq $label "name") -}}
{{- fail (printf "podLabels.%s: the Deployment selects its pods by this label, its value is %q: %s" $label $value $remedy) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What a value stands for is set by that value: rights, ports and volumes follow the value, and not the variable or flag.
The schema cannot say which value to use, so that it is said here.
*/}}
{{- define "memcached-operator.validateSettings" -}}
{{- $values := dict
  "WATCH_NAMESPACE" "watchNamespaces"
  "OPERATOR_NAME" "fullnameOverride"
  "RELATED_IMAGE_MEMCACHED" "memcachedImage"
  "MEMCACHED_OPERATOR_MEMCACHED_USER_ID" "memcachedUserId"
  "POD_NAME" ""
  "POD_NAMESPACE" ""
  "MEMCACHED_OPERATOR_LEADER_ELECT_MODE" "leaderElection.mode"
  "MEMCACHED_OPERATOR_METRICS_BIND_ADDRESS" "metrics.enabled"
  "MEMCACHED_OPERATOR_METRICS_SECURE" "metrics.secure.enabled"
  "MEMCACHED_OPERATOR_METRICS_CERT_DIR" "metrics.secure.certificateSecret"
-}}
{{- $seen := dict -}}
{{- range .Values.extraEnv -}}
{{- if hasKey $values .name -}}
{{- $remedy := empty (get $values .name) | ternary "leave it out, it is the pod's own" (printf "set the value %s instead" (get $values .name)) -}}
{{- fail (printf "extraEnv: %s is the chart's: %s" .name $remedy) -}}
{{- end -}}
{{- if hasKey $seen .name -}}
{{- fail (printf "extraEnv: %s stands there twice, leave one out" .name) -}}
{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- $flags := dict "--watch-namespace" "WATCH_NAMESPACE" "--operator-name" "OPERATOR_NAME" "--memcached-image" "RELATED_IMAGE_MEMCACHED" -}}
{{- range $variable, $value := $values -}}
{{- if hasPrefix "MEMCACHED_OPERATOR_" $variable -}}
{{- $flag := $variable | trimPrefix "MEMCACHED_OPERATOR_" | lower | replace "_" "-" | printf "--%s" -}}
{{- $_ := set $flags $flag $variable -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- $flag := splitList "=" . | first -}}
{{- if hasKey $flags $flag -}}
{{- fail (printf "extraArgs: %s is the chart's: set the value %s instead" $flag (get $values (get $flags $flag))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
