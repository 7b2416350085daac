package heads

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEveryFieldOfAHeadIsInTheTable(t *testing.T) {
	head := reflect.TypeFor[Head]()
	for i := range head.NumField() {
		name, _, _ := strings.Cut(head.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if field := findField(name); assert.NotNil(t, field, name) {
			assert.Equal(t, []int{i}, field.index, name)
		}
	}
}

func TestTableHasEachFieldOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, field := range headFields {
		name := strings.ToLower(field.name)
		assert.False(t, seen[name], name)
		seen[name] = true
	}
}
