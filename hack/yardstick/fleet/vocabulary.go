package main

var (
	colours = []string{"amber", "azure", "coral", "crimson", "emerald", "indigo", "ivory", "jade", "lilac", "ochre", "saffron", "teal"}
	animals = []string{"badger", "condor", "dolphin", "falcon", "heron", "ibex", "kestrel", "lynx", "marten", "otter", "puffin", "stoat", "tapir", "wombat"}
	teams   = []string{"checkout", "finance", "growth", "identity", "logistics", "observability", "platform", "search"}
	regions = []string{"eu-central", "eu-west", "us-east", "us-west", "ap-south"}
	stages  = []string{"development", "staging", "production", "canary"}
	levels  = []string{"debug", "info", "warn", "error"}

	publicImages = []string{
		"docker.io/library/busybox:1.36.1", "quay.io/prometheus/node-exporter:v1.8.2", "ghcr.io/example/sidecar:0.4.11",
		"registry.k8s.io/pause:3.10", "docker.io/envoyproxy/envoy:v1.31.2", "docker.io/library/redis:7.2.5-alpine",
	}

	variables = []string{
		"DATABASE_URL", "LOG_LEVEL", "CACHE_SIZE", "REGION", "FEATURE_FLAGS", "HTTP_TIMEOUT", "QUEUE_NAME", "TRACING_ENDPOINT",
		"MAX_CONNECTIONS", "RETRY_LIMIT", "SESSION_SECRET", "METRICS_PORT", "PUBLIC_URL", "SMTP_HOST", "BUCKET", "WORKERS",
	}

	comments = []string{
		"see the runbook before changing this", "agreed with the platform team", "TODO: remove after the migration",
		"keep in step with staging", "größer als der Standard", "measured in production, 2026-03",
	}

	remarks = []string{"set by hand", "default", "do not lower", "ticket OPS-4711", "was 5 before"}

	sentences = []string{
		"Receives orders from the shop and hands them to the warehouse.",
		"Keeps the last known position of every parcel.",
		"Renders the monthly statements and stores them for ten years.",
		"Answers searches over the product catalogue.",
		"Restarts are harmless; it resumes where it stopped.",
		"Traffic doubles on the first day of the month.",
	}
)
