// Package yamltest has texts for tests of YAML.
package yamltest

// Difficult are texts that mean something else in YAML unless they are quoted, or can't be
// written plainly.
var Difficult = []string{
	"", "yes", "null", "~", "1e3", "0x1f", "- a", "a: b", "a #b", "line1\nline2\n", "line\n\n", " lead\nx", "x\n trail ", "true",
	"2020-01-01", "\n", "a\n\n\nb", "|", "? a", "'q'", "a\r\nb", "\tx", "x\t", "0o7", "1_000", ".inf", "<<", "=", "!!str a", "&a", "*a",
	"...", "---", "a\n---\nb", "a:", "{a}", "line1\n  indented\nline3\n", "Ask:\n- one\n- two # x\n", "12345678-1234-1234-1234-123456789012",
	"0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01", "5e123456-1234-1234-1234-123456789012", "https://a.example.com/x?y=z#f", "https://a.example.com:", "é\n😀",
}
