package toolargs

import (
	"encoding"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/headsapi/heads-go/internal/mask"
)

// Options say how FromStruct reads times.
type Options struct {
	// Location is the time zone of a time without one. If it is nil, the model is asked
	// for the zone.
	Location *time.Location
	// Stamp is a struct type to which Stamp can be converted.
	Stamp reflect.Type
}

// SchemaFault is what is wrong with a part of a struct: "field City" or "type In".
type SchemaFault struct {
	Part string
	check.Fault
}

// FromStruct returns the fields of the struct type in that have no fault, and the
// faults of the others. Only the outer fields need a description, since those of inner
// fields can't be registered.
func FromStruct(in reflect.Type, o Options) (Fields, []SchemaFault) {
	b := schemaBuilder{Options: o}
	if in.Kind() != reflect.Struct {
		b.refuse("", "is of type "+in.String(), "give a struct whose fields are the parameters")
		return Fields{}, b.faults
	}
	b.open = append(b.open, in)
	accepted := slices.DeleteFunc(b.fields(in, ""), func(f Field) bool { return !b.accepts(f) })
	return NewFields(accepted), b.faults
}

// schemaBuilder reads the fields of a struct type and collects all faults in it.
type schemaBuilder struct {
	Options
	open   []reflect.Type // the types that contain the current one
	faults []SchemaFault
}

// foreignTag matches a jsonschema tag in the syntax of another library: one with
// a keyword=value pair before the first space, and one that begins with a list
// of keywords.
var foreignTag = regexp.MustCompile(`(?i)^\s*([^\s=]+=|required\s*(,|$)|nullable\s*(,|$)|description:)`)

// accepts reports whether a field can be registered under its name and
// description, and refuses it otherwise.
func (b *schemaBuilder) accepts(f Field) bool {
	switch {
	case f.Name == SessionMetadata:
		b.refuse(f.goName, "is named "+SessionMetadata+", which carries the session", "choose another json name")
	case strings.TrimSpace(f.Description) == "":
		b.refuse(f.goName, "has no description", "write one into its jsonschema tag")
	case foreignTag.MatchString(f.Description):
		b.refuse(f.goName, "has the jsonschema tag "+mask.Quote(f.Description)+" in the syntax of another library", "write the description alone, "+
			"like jsonschema:\"City to report on\"; a field is required unless it is a pointer or its json tag has omitempty")
	default:
		return true
	}
	return false
}

// refuse adds a fault of a field, or with "" of the struct itself.
func (b *schemaBuilder) refuse(goName, problem, remedy string) {
	part := "field " + goName
	if goName == "" {
		part = "type In"
	}
	b.faults = append(b.faults, SchemaFault{part, check.Fault{Problem: problem, Remedy: remedy}})
}

// fields returns the usable fields of the struct t, those of embedded structs
// among them, and refuses a name that occurs twice.
func (b *schemaBuilder) fields(t reflect.Type, goPath string) []Field {
	var fields []Field
	for _, f := range b.visible(t, goPath, nil) {
		same := slices.IndexFunc(fields, func(other Field) bool { return other.Name == f.Name })
		if same >= 0 {
			b.refuse(f.goName, "has the json name "+f.Name+" of field "+fields[same].goName, "choose another")
			continue
		}
		fields = append(fields, f)
	}
	return fields
}

// visible returns the fields of t before their names are compared.
func (b *schemaBuilder) visible(t reflect.Type, goPath string, index []int) []Field {
	var fields []Field
	hidden := 0
	for i := range t.NumField() {
		sf := t.Field(i)
		goName := goPath + sf.Name
		at := append(slices.Clone(index), i)
		tag, tagged := sf.Tag.Lookup("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
		case sf.Anonymous && name == "":
			fields = append(fields, b.embedded(sf.Type, goName, at)...)
		case !sf.IsExported() && tagged:
			b.refuse(goName, "is unexported, so it can't be set", "export it or take its json tag away")
		case !sf.IsExported():
			hidden++
		default:
			if f, ok := b.field(sf, goName); ok {
				f.index = at
				fields = append(fields, f)
			}
		}
	}
	if hidden > 0 && hidden == t.NumField() {
		b.refuse(strings.TrimSuffix(goPath, "."), "is a struct without an exported field", "export those that are arguments")
	}
	return fields
}

// field returns the exported field sf. It reports false after a fault.
func (b *schemaBuilder) field(sf reflect.StructField, goName string) (Field, bool) {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if name == "" {
		name = sf.Name
	}
	a, ok := b.argument(sf.Type, goName)
	return Field{
		argument:    a,
		Name:        name,
		Description: sf.Tag.Get("jsonschema"),
		goName:      goName,
		optional:    sf.Type.Kind() == reflect.Pointer || mayBeOmitted(options),
	}, ok
}

func mayBeOmitted(options string) bool {
	list := strings.Split(options, ",")
	return slices.Contains(list, "omitempty") || slices.Contains(list, "omitzero")
}

// embedded returns the fields of an embedded struct as those of the outer one.
func (b *schemaBuilder) embedded(t reflect.Type, goName string, index []int) []Field {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(textUnmarshalerType) ||
		reflect.PointerTo(t).Implements(jsonUnmarshalerType) {
		b.refuse(goName, "is embedded and not a plain struct", "make it a field with a name")
		return nil
	}
	return b.visible(t, goName+".", index)
}

var (
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonUnmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	goTimeType          = reflect.TypeFor[time.Time]()
	goDurationType      = reflect.TypeFor[time.Duration]()
	rawMessageType      = reflect.TypeFor[json.RawMessage]()
)

// argument returns how a value of type t is registered and read. It reports
// false after a fault.
func (b *schemaBuilder) argument(t reflect.Type, goName string) (argument, bool) {
	if slices.Contains(b.open, t) {
		b.refuse(goName, "is of type "+t.String()+", which holds itself", "use json.RawMessage")
		return argument{}, false
	}
	b.open = append(b.open, t)
	defer func() { b.open = b.open[:len(b.open)-1] }()

	switch {
	case t == rawMessageType:
		return argument{wireType: "object", decode: decodeRaw, nullable: true}, true
	case t == goTimeType:
		return argument{wireType: "string", decode: timeDecoder(b.Location), blankIsAbsent: true}, true
	case t == b.Stamp:
		return argument{wireType: "string", decode: stampDecoder(b.Location), blankIsAbsent: true}, true
	case t == goDurationType:
		return argument{wireType: "string", decode: decodeDuration, blankIsAbsent: true}, true
	case t.Kind() == reflect.Pointer:
		elem, ok := b.argument(t.Elem(), goName)
		elem.decode, elem.nullable = pointerDecoder(elem), true
		return elem, ok
	case reflect.PointerTo(t).Implements(textUnmarshalerType):
		return argument{wireType: "string", decode: decodeTextUnmarshaler, blankIsAbsent: true}, true
	case reflect.PointerTo(t).Implements(jsonUnmarshalerType):
		return argument{wireType: wireTypeOf(t.Kind()), decode: decodeJSONUnmarshaler}, b.supported(t, goName)
	case isScalar(t.Kind()):
		return scalarArgument(t.Kind()), true
	default:
		return b.composite(t, goName)
	}
}

func isScalar(k reflect.Kind) bool { return !notScalar(wireTypeOf(k)) }

func scalarArgument(k reflect.Kind) argument {
	a := argument{wireType: wireTypeOf(k), blankIsAbsent: k != reflect.String}
	switch {
	case k == reflect.String:
		a.decode = decodeString
	case k == reflect.Bool:
		a.decode = decodeBool
	case a.wireType == "number":
		a.decode = decodeFloat
	case k >= reflect.Uint:
		a.decode = decodeUint
	default:
		a.decode = decodeInt
	}
	return a
}

// composite returns an argument that holds others.
func (b *schemaBuilder) composite(t reflect.Type, goName string) (argument, bool) {
	a := argument{wireType: wireTypeOf(t.Kind()), blankIsAbsent: true}
	switch t.Kind() {
	case reflect.Struct:
		before := len(b.faults)
		a.decode = structDecoder(NewFields(b.fields(t, goName+".")))
		return a, len(b.faults) == before
	case reflect.Slice:
		if isBase64(t) {
			return argument{wireType: "string", decode: decodeBytes}, true
		}
		elem, ok := b.argument(t.Elem(), goName)
		a.decode = sliceDecoder(elem)
		return a, ok
	case reflect.Array:
		elem, ok := b.argument(t.Elem(), goName)
		a.decode = arrayDecoder(elem)
		return a, ok
	case reflect.Map:
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textUnmarshalerType) {
			b.refuse(goName, "is a map with keys of type "+t.Key().String(), "use string keys")
			return argument{}, false
		}
		elem, ok := b.argument(t.Elem(), goName)
		a.decode = mapDecoder(elem)
		return a, ok
	default:
		return argument{}, b.supported(t, goName)
	}
}

// isBase64 reports whether t is a byte slice, which JSON writes as base64.
func isBase64(t reflect.Type) bool {
	elem := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !elem.Implements(textUnmarshalerType) && !elem.Implements(jsonUnmarshalerType)
}

// supported refuses a type that no JSON value can fill.
func (b *schemaBuilder) supported(t reflect.Type, goName string) bool {
	if wireTypeOf(t.Kind()) != "" {
		return true
	}
	b.refuse(goName, "is of type "+t.String()+", which no argument can fill", "use a string, number, bool, slice, "+
		"map, struct or json.RawMessage")
	return false
}

func wireTypeOf(k reflect.Kind) string {
	switch {
	case k == reflect.String:
		return "string"
	case k == reflect.Bool:
		return "boolean"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	case k == reflect.Slice || k == reflect.Array:
		return "array"
	case k == reflect.Struct || k == reflect.Map:
		return "object"
	default:
		return ""
	}
}
