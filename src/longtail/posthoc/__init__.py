"""posthoc."""
