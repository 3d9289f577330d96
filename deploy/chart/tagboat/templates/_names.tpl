{{- define "tagboat.name" -}}
{{- if contains "tagboat" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-tagboat" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tagboat.account" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- template "tagboat.name" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "tagboat.labels" }}    app.kubernetes.io/name: tagboat
    app.kubernetes.io/instance: {{ toJson .Release.Name }}
    app.kubernetes.io/version: {{ toJson .Chart.AppVersion }}
    app.kubernetes.io/managed-by: {{ toJson .Release.Service }}
{{- end -}}

{{- /* The suffix of the Lease names: with a label selector, the first digits of its SHA-256. */ -}}
{{- define "tagboat.leaseSuffix" -}}
{{- with index .Values.flags "watch-label-selector" -}}
{{- toString . | sha256sum | trunc 8 | printf "-%s" -}}
{{- end -}}
{{- end -}}
