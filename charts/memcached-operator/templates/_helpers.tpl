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

{{/* The kind's group, as the files say that are made with it. */}}
{{- define "memcached-operator.group" -}}
{{- (.Files.Get "files/memcached_view.yaml" | fromYaml).rules | first | dig "apiGroups" list | first -}}
{{- end -}}

{{/* What the pods are selected by. Never changed: a Deployment's selector cannot be. */}}
{{- define "memcached-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
name: {{ include "memcached-operator.fullname" . | quote }}
{{- end -}}

{{/* What every object has of the chart's own. */}}
{{- define "memcached-operator.chartLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") | quote }}
{{- end -}}

{{- define "memcached-operator.labels" -}}
{{- include "memcached-operator.chartLabels" . -}}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end -}}
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

{{/* The Secret with the metrics' certificate; empty where the operator signs one itself. */}}
{{- define "memcached-operator.certificateSecret" -}}
{{- if .Values.metrics.secure.certManager.enabled -}}
{{- printf "%s-metrics-certificate" (include "memcached-operator.fullname" .) -}}
{{- else -}}
{{- .Values.metrics.secure.certificateSecret -}}
{{- end -}}
{{- end -}}

{{/* How Prometheus checks the certificate: by its authority wherever that is known. */}}
{{- define "memcached-operator.scrapeTLS" -}}
{{- $secret := include "memcached-operator.certificateSecret" . -}}
{{- if .Values.metrics.podMonitor.tlsConfig -}}
{{- toYaml .Values.metrics.podMonitor.tlsConfig -}}
{{- else if $secret -}}
ca:
  secret:
    name: {{ $secret | quote }}
    key: ca.crt
serverName: {{ printf "%s-metrics" (include "memcached-operator.fullname" .) | quote }}
{{- else -}}
insecureSkipVerify: true
{{- end -}}
{{- end -}}

{{/* How each path of the operator's metrics is scraped. */}}
{{- define "memcached-operator.scraped" -}}
port: metrics
{{- with .Values.metrics.podMonitor.interval }}
interval: {{ . | quote }}
{{- end }}
{{- if .Values.metrics.secure.enabled }}
scheme: https
authorization:
  type: Bearer
  credentials:
    name: {{ printf "%s-scraper" (include "memcached-operator.fullname" .) | quote }}
    key: token
tlsConfig:
  {{- include "memcached-operator.scrapeTLS" . | nindent 2 }}
{{- else }}
scheme: http
{{- end }}
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
{{- if and .Values.metrics.secure.certManager.enabled (not .Values.metrics.secure.enabled) -}}
{{- fail "metrics.secure.certManager.enabled: set metrics.secure.enabled too, else nothing is served by TLS" -}}
{{- end -}}
{{- if and .Values.metrics.secure.certManager.enabled .Values.metrics.secure.certificateSecret -}}
{{- fail "metrics.secure.certificateSecret: leave it out, metrics.secure.certManager.enabled has cert-manager make a Secret" -}}
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
{{- $own := merge (include "memcached-operator.selectorLabels" . | fromYaml) (include "memcached-operator.chartLabels" . | fromYaml) -}}
{{- range $label := keys $own | sortAlpha -}}
{{- if hasKey ($.Values.commonLabels | default dict) $label -}}
{{- fail (printf "commonLabels.%s is the chart's: leave it out, or take a label of another name" $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What a value stands for is set by that value: permissions, ports and volumes follow the value, and not the flag or variable.
By flag, what to do instead. The schema cannot say that, so that it is said here.
*/}}
{{- define "memcached-operator.taken" -}}
watch-namespace: set the value watchNamespaces instead
operator-name: set the value fullnameOverride instead
memcached-image: set the value memcachedImage instead
memcached-user-id: set the value memcachedUserId instead
workers: set the value workers instead
server-credentials: set the value serverCredentials.enabled instead
leader-elect: leave it out, for one replica and no standby set the value replicas to 1
leader-elect-mode: set the value leaderElection.mode instead
leader-elect-id: set the value fullnameOverride instead, the lock is named by it and -lock
leader-elect-namespace: leave it out, the lock is in the release's namespace
health-probe-bind-address: leave it out, the kubelet asks port 8081
metrics-bind-address: set the value metrics.enabled instead
metrics-per-object: set the value metrics.perObject instead
metrics-secure: set the value metrics.secure.enabled instead
metrics-cert-dir: set the value metrics.secure.certificateSecret instead
log-format: set the value log.format instead
log-level: set the value log.level instead
{{- end -}}

{{- define "memcached-operator.validateSettings" -}}
{{- $taken := include "memcached-operator.taken" . | fromYaml -}}
{{- $problems := list -}}
{{- $pods := "leave it out, it is the pod's own" -}}
{{- $variables := dict "POD_NAME" $pods "POD_NAMESPACE" $pods "MEMCACHED_API_GROUP" "leave it out, it is that of the kind in the chart" -}}
{{- $named := dict "watch-namespace" "WATCH_NAMESPACE" "operator-name" "OPERATOR_NAME" "memcached-image" "RELATED_IMAGE_MEMCACHED" -}}
{{- range $flag, $remedy := $taken -}}
{{- $_ := set $variables (get $named $flag | default (printf "MEMCACHED_OPERATOR_%s" ($flag | upper | replace "-" "_"))) $remedy -}}
{{- end -}}
{{- $seen := dict -}}
{{- range .Values.extraEnv -}}
{{- if hasKey $variables .name -}}
{{- $problems = append $problems (printf "extraEnv: %s is the chart's: %s" .name (get $variables .name)) -}}
{{- end -}}
{{- if hasKey $seen .name -}}
{{- $problems = append $problems (printf "extraEnv: %s stands there twice, leave one out" .name) -}}
{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- $others := dict "-n" "watch-namespace" "--namespace" "watch-namespace" "-A" "watch-namespace" "--all-namespaces" "watch-namespace" -}}
{{- range .Values.extraArgs -}}
{{- /* A short flag may have its value right behind it: -nshop. */ -}}
{{- $flag := hasPrefix "--" . | ternary (splitList "=" . | first) (trunc 2 .) -}}
{{- $name := get $others $flag | default ($flag | trimPrefix "--") -}}
{{- if hasKey $taken $name -}}
{{- $problems = append $problems (printf "extraArgs: %s is the chart's: %s" $flag (get $taken $name)) -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (join "\n" $problems) -}}
{{- end -}}
{{- end -}}
