module github.com/headsapi/heads-go/internal/dev/release

go 1.25.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	golang.org/x/mod v0.36.0
)
