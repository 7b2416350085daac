// Package exporter is a runnable example with a complete exporter: a client, an event handler and
// an inbox report through OpenTelemetry to a page that Prometheus scrapes. It is a separate module,
// so that no other program gets its dependencies.
package exporter
