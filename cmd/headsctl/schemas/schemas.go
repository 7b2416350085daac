// Package schemas has the JSON Schemas of the files that headsctl reads.
package schemas

import (
	_ "embed"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/schema"
)

var (
	// Heads is that of heads.yaml.
	//
	//go:embed heads.schema.json
	Heads []byte

	//go:embed test.schema.json
	test []byte

	// Test is that of *.test.yaml, with the definitions of Heads to which it refers.
	Test = schema.Bundle(test, "heads.schema.json", Heads)
)
