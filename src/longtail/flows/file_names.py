"""What the files are called that commands write, and which of them belong together."""

PAGE, METRICS = "report.html", "metrics.json"
SCORES, ADJUSTER = "scores.safetensors", "adjuster.json"
MODEL, VALIDATION, TEST = "model.safetensors", "validation.safetensors", "test.safetensors"
RECIPE, VERSIONS, LOG = "recipe.yaml", "versions.json", "log.csv"
COMPARISON, DEMO_RESULTS, AUDIT_RESULT = "comparison.json", "results.json", "audit.json"
COUNTS = ("counts.json", "test_counts.json")

FIX = (SCORES, ADJUSTER, METRICS, PAGE)
FIT = (MODEL, VALIDATION, TEST, METRICS, PAGE)
TRAIN = (VERSIONS, LOG, METRICS, MODEL, PAGE)
COMPARE = (PAGE, "table.md", "table.tex", COMPARISON)
DEMO = (PAGE, DEMO_RESULTS)
AUDIT = (PAGE, AUDIT_RESULT, *COUNTS)
