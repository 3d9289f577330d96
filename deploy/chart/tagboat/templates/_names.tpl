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

{{- define "tagboat.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "tagboat.agent" -}}
{{- printf "%s-agent" (include "tagboat.name" .) -}}
{{- end -}}

{{- /* Flags by name, as arguments of a container. */ -}}
{{- define "tagboat.flags" }}
{{- range $name, $value := . }}
{{- if kindIs "invalid" $value }}
{{- else if and (kindIs "bool" $value) $value }}
            - {{ printf "--%s" $name | toJson }}
{{- else if and (kindIs "float64" $value) (eq (floor $value) $value) }}
            - {{ printf "--%s=%d" $name (int64 $value) | toJson }}
{{- else }}
            - {{ printf "--%s=%v" $name $value | toJson }}
{{- end }}
{{- end }}
{{- end -}}
