// Package exporter has an exporter set up in full, as an example that runs: a client, an event
// handler and an inbox report through OpenTelemetry to a page that Prometheus reads. It is a module
// of its own, so that no other program gets its dependencies.
package exporter
