package heads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// There is one type for every way in which a value can be read.
type (
	toolColor   string
	toolAddress struct {
		Street string   `json:"street"`
		Number *int     `json:"number"`
		Lines  []string `json:"lines,omitempty"`
	}
	toolPage struct {
		Page uint `json:"page" jsonschema:"Page to show"`
	}
	toolGrade int // a type with its own JSON
)

// toolCode is a string of a form of its own.
type toolCode string

func (c *toolCode) UnmarshalText(text []byte) error {
	*c = toolCode(text)
	return nil
}

// toolChoice is a struct with its own JSON.
type toolChoice struct{ Chosen string }

func (c *toolChoice) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &c.Chosen) }

func (g *toolGrade) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"low"`:
		*g = 1
	case `"high"`:
		*g = 2
	default:
		return fmt.Errorf("no grade")
	}
	return nil
}

func (g toolGrade) MarshalJSON() ([]byte, error) {
	return []byte([]string{`""`, `"low"`, `"high"`}[g]), nil
}

// toolKinds has a field of every supported kind.
type toolKinds struct {
	toolPage
	Text        string                 `json:"text" jsonschema:"Text"`
	Color       toolColor              `json:"color" jsonschema:"Named string"`
	Yes         bool                   `json:"yes" jsonschema:"Boolean"`
	Int         int                    `json:"int" jsonschema:"Integer"`
	Int8        int8                   `json:"int8" jsonschema:"Integer of 8 bits"`
	Int16       int16                  `json:"int16" jsonschema:"Integer of 16 bits"`
	Int32       int32                  `json:"int32" jsonschema:"Integer of 32 bits"`
	Int64       int64                  `json:"int64" jsonschema:"Integer of 64 bits"`
	Uint        uint                   `json:"uint" jsonschema:"Unsigned integer"`
	Uint8       uint8                  `json:"uint8" jsonschema:"Unsigned integer of 8 bits"`
	Uint16      uint16                 `json:"uint16" jsonschema:"Unsigned integer of 16 bits"`
	Uint32      uint32                 `json:"uint32" jsonschema:"Unsigned integer of 32 bits"`
	Uint64      uint64                 `json:"uint64" jsonschema:"Unsigned integer of 64 bits"`
	Float32     float32                `json:"float32" jsonschema:"Number of 32 bits"`
	Float64     float64                `json:"float64" jsonschema:"Number of 64 bits"`
	Time        time.Time              `json:"time" jsonschema:"Time"`
	Stamp       heads.Time             `json:"stamp" jsonschema:"Time with its text"`
	Address     netip.Addr             `json:"address" jsonschema:"Text of a form"`
	Grade       toolGrade              `json:"grade" jsonschema:"JSON of a form, low or high"`
	Bytes       []byte                 `json:"bytes" jsonschema:"Bytes in base64"`
	Raw         json.RawMessage        `json:"raw" jsonschema:"Any value"`
	List        []string               `json:"list" jsonschema:"List of texts"`
	Lists       [][]int                `json:"lists" jsonschema:"List of lists"`
	Pair        [2]float64             `json:"pair" jsonschema:"List of two"`
	Map         map[toolColor]int      `json:"map" jsonschema:"Number by name"`
	Maps        map[string][]string    `json:"maps" jsonschema:"Lists by name"`
	Home        toolAddress            `json:"home" jsonschema:"Object with street, number, lines"`
	Homes       []toolAddress          `json:"homes" jsonschema:"List of objects"`
	ByName      map[string]toolAddress `json:"by_name" jsonschema:"Objects by name"`
	Pointers    []*int                 `json:"pointers" jsonschema:"List with gaps"`
	MaybeText   *string                `json:"maybe_text" jsonschema:"Optional text"`
	MaybeInt    *int64                 `json:"maybe_int" jsonschema:"Optional integer"`
	MaybeHome   *toolAddress           `json:"maybe_home" jsonschema:"Optional object"`
	EmptyText   string                 `json:"empty_text,omitempty" jsonschema:"Text that may be left out"`
	EmptyFloat  float64                `json:"empty_float,omitempty" jsonschema:"Number that may be left out"`
	EmptyList   []int                  `json:"empty_list,omitempty" jsonschema:"List that may be left out"`
	ZeroTime    time.Time              `json:"zero_time,omitzero" jsonschema:"Time that may be left out"`
	Untagged    bool                   `jsonschema:"Boolean under its Go name"`
	NameOmitted int                    `json:",omitempty" jsonschema:"Integer under its Go name"`
	Ignored     func()                 `json:"-"`
	unexported  int
}

func TestParametersComeFromTheStruct(t *testing.T) {
	h := newToolHandler(t, heads.WithPathToken(toolToken))
	addTool[toolKinds](t, h, "all_kinds")
	addWeather(t, h)
	addTool[struct{}](t, h, "nothing")
	_ = toolKinds{}.unexported
	for _, tool := range h.Tools() {
		require.NoError(t, tool.Validate())
	}
	got, err := json.MarshalIndent(h.Tools(), "", "  ")
	require.NoError(t, err)
	assert.JSONEq(t, toolDocument(t, "definitions.json"), string(got))
}

type (
	withDuplicate struct {
		City string `json:"Town" jsonschema:"City"`
		Town string `jsonschema:"Town"`
	}
	withEmbeddedDuplicate struct {
		toolPage
		Number int `json:"page" jsonschema:"Page"`
	}
	withInnerDuplicate struct {
		Home struct {
			A string `json:"B"`
			B string
		} `json:"home" jsonschema:"Home"`
	}
	withUnexported struct{ city string }
	withInnerLock  struct {
		Lock struct{ state int32 } `json:"lock" jsonschema:"Lock"`
	}
	withTaggedUnexported struct {
		City string `json:"city" jsonschema:"City"`
		town string `json:""`
	}
	withEmbeddedString  struct{ toolColor }
	withEmbeddedPointer struct{ *toolPage }
	withEmbeddedTime    struct{ time.Time }
	withEmbeddedAddr    struct{ netip.Addr }
	withEmbeddedChoice  struct{ toolChoice }
	withTree            struct {
		Tree toolTree `json:"tree" jsonschema:"Tree"`
	}
	toolTree struct {
		Children []toolTree `json:"children"`
	}
	toolNest           []toolNest
	requiredArg[T any] struct {
		V T `json:"v" jsonschema:"A value"`
	}
)

func TestAddToolRefusesStructsThatNoCallCanFill(t *testing.T) {
	_ = withUnexported{}.city
	_ = withTaggedUnexported{}.town
	_ = withInnerLock{}.Lock.state
	_ = withEmbeddedString{}.toolColor
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"string", addBroken[string](t), "type In is of type string; give a struct"},
		{"pointer", addBroken[*weatherArguments](t), "type In is of type *heads_test.weatherArguments; give a struct"},
		{"map", addBroken[map[string]string](t), "type In is of type map[string]string; give a struct"},
		{"any", addBroken[any](t), "type In is of type interface {}; give a struct"},
		{"channel", addBroken[requiredArg[chan int]](t), "field V is of type chan int, which no argument can fill"},
		{"function", addBroken[requiredArg[func()]](t), "field V is of type func(), which no argument can fill"},
		{"complex", addBroken[requiredArg[complex128]](t), "field V is of type complex128, which"},
		{"uintptr", addBroken[requiredArg[uintptr]](t), "field V is of type uintptr, which"},
		{"any field", addBroken[requiredArg[any]](t), "field V is of type interface {}, which no argument can fill; use a string, number, bool, slice, map, struct or json.RawMessage"},
		{"interface field", addBroken[requiredArg[fmt.Stringer]](t), "field V is of type fmt.Stringer, which"},
		{"list of channels", addBroken[requiredArg[[]chan int]](t), "field V is of type chan int, which"},
		{"array of channels", addBroken[requiredArg[[2]chan int]](t), "field V is of type chan int, which"},
		{"pointer to a channel", addBroken[requiredArg[*chan int]](t), "field V is of type chan int, which"},
		{"map of channels", addBroken[requiredArg[map[string]chan int]](t), "field V is of type chan int, which"},
		{"map by number", addBroken[requiredArg[map[int]string]](t), "field V is a map with keys of type int; use string keys"},
		{"map by text of a form", addBroken[requiredArg[map[toolCode]string]](t), "field V is a map with keys of type heads_test.toolCode; use string keys"},
		{"map by address", addBroken[requiredArg[map[netip.Addr]string]](t), "field V is a map with keys of type netip.Addr"},
		{"inner channel", addBroken[requiredArg[struct{ C chan int }]](t), "field V.C is of type chan int, which"},
		{"deeper channel", addBroken[requiredArg[[]map[string]struct{ C []chan int }]](t), "field V.C is of type chan int, which"},
		{"unexported fields alone", addBroken[withUnexported](t), "type In is a struct without an exported field"},
		{"inner unexported fields alone", addBroken[withInnerLock](t), "field Lock is a struct without an exported field"},
		{"unexported field with a tag", addBroken[withTaggedUnexported](t), "field town is unexported"},
		{"embedded string", addBroken[withEmbeddedString](t), "field toolColor is embedded and not a plain struct"},
		{"embedded pointer", addBroken[withEmbeddedPointer](t), "field toolPage is embedded and not a plain struct"},
		{"embedded time", addBroken[withEmbeddedTime](t), "field Time is embedded and not a plain struct"},
		{"embedded address", addBroken[withEmbeddedAddr](t), "field Addr is embedded and not a plain struct"},
		{"embedded struct with its own JSON", addBroken[withEmbeddedChoice](t), "field toolChoice is embedded and not a plain struct"},
		{"struct in itself", addBroken[withTree](t), "field Tree.Children is of type heads_test.toolTree, which holds itself; use json.RawMessage"},
		{"slice of itself", addBroken[requiredArg[toolNest]](t), "field V is of type heads_test.toolNest, which holds itself"},
		{"one name twice", addBroken[withDuplicate](t), "field Town has the json name Town of field City"},
		{"one name twice by embedding", addBroken[withEmbeddedDuplicate](t), "field Number has the json name page of field toolPage.Page"},
		{"one inner name twice", addBroken[withInnerDuplicate](t), "field Home.B has the json name B of field Home.A"},
		{"name of the session", addBroken[struct {
			S string `json:"session_metadata" jsonschema:"Session"`
		}](t), "field S is named session_metadata"},
		{"no description", addBroken[struct{ City string }](t), "field City has no description; write one into its jsonschema tag"},
		{"blank description", addBroken[struct {
			City string `jsonschema:"  "`
		}](t), "field City has no description"},
	} {
		t.Run(row.name, func(t *testing.T) {
			faults := requireInvalid(t, row.err, "AddTool")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], `heads: AddTool: tool "broken" `+row.want)
		})
	}
}

// addBroken returns the error of AddTool for a tool whose struct alone is invalid.
func addBroken[In any](t *testing.T) error {
	t.Helper()
	h := newToolHandler(t)
	err := heads.AddTool(h, "broken", "A tool", func(context.Context, In) (string, error) { return "", nil })
	require.Empty(t, h.Tools(), "nothing incomplete is kept")
	return err
}

func TestAddToolRefusesTagsOfOtherLibraries(t *testing.T) {
	for tag, err := range map[string]error{
		"description=City": addBroken[struct {
			City string `jsonschema:"description=City"`
		}](t),
		"required,description=City": addBroken[struct {
			City string `jsonschema:"required,description=City"`
		}](t),
		"required, description=City": addBroken[struct {
			City string `jsonschema:"required, description=City"`
		}](t),
		"title=city,required": addBroken[struct {
			City string `jsonschema:"title=city,required"`
		}](t),
		"enum=Oslo,enum=Rome": addBroken[struct {
			City string `jsonschema:"enum=Oslo,enum=Rome"`
		}](t),
		"nullable,minLength=1": addBroken[struct {
			City string `jsonschema:"nullable,minLength=1"`
		}](t),
		"required": addBroken[struct {
			City string `jsonschema:"required"`
		}](t),
		"description:City": addBroken[struct {
			City string `jsonschema:"description:City"`
		}](t),
	} {
		t.Run(tag, func(t *testing.T) {
			faults := requireInvalid(t, err, "AddTool")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], `field City`)
			assert.Contains(t, faults[0], `"`+tag+`" in the syntax of another library; write the description alone`)
			assert.Contains(t, faults[0], "required unless it is a pointer or its json tag has omitempty")
		})
	}
}

func TestDescriptionsMayHoldWordsOfOtherLibraries(t *testing.T) {
	h := newToolHandler(t)
	addTool[struct {
		Filter string `json:"filter" jsonschema:"Filter like size=large, required"`
		Zone   string `json:"zone" jsonschema:"Required zone"`
		Text   string `json:"text" jsonschema:"Description of the case"`
	}](t, h, "find")
	assert.Equal(t, "Filter like size=large, required", h.Tools()[0].Parameters[0].Description)
}

func TestEmbeddedStructWithANameIsOneParameter(t *testing.T) {
	type Page struct {
		Number int `json:"number"`
	}
	type in struct {
		Page `json:"page" jsonschema:"Page to show"`
	}
	got, reply := callWith[in](t, `{"page":{"number":3}}`)
	require.Equal(t, "done", reply)
	assert.Equal(t, 3, got.Number)
}

func TestOneTypeMayOccurTwice(t *testing.T) {
	h := newToolHandler(t)
	got := addTool[struct {
		From toolAddress   `json:"from" jsonschema:"From"`
		To   []toolAddress `json:"to" jsonschema:"To"`
	}](t, h, "move")
	assert.Equal(t, "done", toolReply(t, postTool(h, "/move", `{"from":{"street":"A"},"to":[{"street":"B"}]}`)))
	assert.Equal(t, "A", got.From.Street)
	assert.Equal(t, "B", got.To[0].Street)
}

func TestAddToolRefusesDefinitionsThatTheServiceCannotLoad(t *testing.T) {
	f := func(context.Context, weatherArguments) (string, error) { return "", nil }
	for _, row := range []struct{ name, tool, description string }{
		{"no name", "", "Weather"},
		{"space in the name", "get weather", "Weather"},
		{"slash in the name", "get/weather", "Weather"},
		{"long name", strings.Repeat("w", 65), "Weather"},
		{"no description", "get_weather", ""},
		{"blank description", "get_weather", " "},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newToolHandler(t)
			assert.NotEmpty(t, requireInvalid(t, heads.AddTool(h, row.tool, row.description, f), "AddTool"))
			assert.Empty(t, h.Tools())
		})
	}
	t.Run("bad parameter name", func(t *testing.T) {
		err := addBroken[struct {
			City string `json:"the city" jsonschema:"City"`
		}](t)
		faults := requireInvalid(t, err, "AddTool")
		assert.Contains(t, faults[0], "the city")
	})
}

func TestAddToolRefusesATakenName(t *testing.T) {
	h := newToolHandler(t)
	got := addWeather(t, h)
	err := heads.AddTool(h, "get_weather", "Another", func(context.Context, weatherArguments) (string, error) { return "other", nil })
	faults := requireInvalid(t, err, "AddTool")
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0], "is taken")
	assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", `{"city":"Oslo"}`)), "the first one stays")
	assert.Equal(t, "Oslo", got.City)
}

func TestAddToolReturnsAllFaultsAtOnce(t *testing.T) {
	h := newToolHandler(t)
	err := heads.AddTool[struct {
		City  string   `json:"Town"`
		Town  string   `jsonschema:"Town"`
		Chan  chan int `json:"chan" jsonschema:"Channel"`
		Other string   `json:"an other" jsonschema:"Other"`
	}](h, "get weather", "", nil)
	all := strings.Join(requireInvalid(t, err, "AddTool"), "\n")
	for _, want := range []string{"field City has no description", "field Town has the json name", "field Chan is of type",
		"an other", "get weather", "function is nil", "description"} {
		assert.Contains(t, all, want)
	}
}

func TestUnsupportedFieldMayBeLeftOut(t *testing.T) {
	h := newToolHandler(t)
	addTool[struct {
		City string   `json:"city" jsonschema:"City"`
		Chan chan int `json:"-"`
	}](t, h, "get_weather")
	assert.Equal(t, []heads.ToolParameter{{Name: "city", Type: "string", Description: "City"}}, h.Tools()[0].Parameters)
}

// Other tests rely on toolKinds having every kind.
func TestEveryKindIsCovered(t *testing.T) {
	seen := map[reflect.Kind]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[toolKinds]()) {
		seen[f.Type.Kind()] = true
	}
	for kind := reflect.Bool; kind <= reflect.Struct; kind++ {
		switch kind {
		case reflect.Uintptr, reflect.Complex64, reflect.Complex128, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		default:
			assert.True(t, seen[kind], kind.String())
		}
	}
}

// callWith returns the arguments that a tool receives, and its reply.
func callWith[In any](t testing.TB, body string) (In, string) {
	t.Helper()
	h := newToolHandler(t)
	got := addTool[In](t, h, "tool")
	reply := toolReply(t, postTool(h, "/tool", body))
	return *got, reply
}

// randomKinds returns a value whose required fields are all different from missing
// ones.
func randomKinds(r *rand.Rand) toolKinds {
	address := func() toolAddress {
		a := toolAddress{Street: randomText(r), Lines: randomList(r, 1, randomText)}
		if r.IntN(2) == 0 {
			a.Lines = nil
		}
		a.Number = maybe(r, r.Int())
		return a
	}
	moment := func() time.Time { return time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC() }
	number := func(r *rand.Rand) int { return int(r.Uint64()) }
	k := toolKinds{
		toolPage: toolPage{uint(r.Uint64())},
		Text:     randomText(r), Color: toolColor(randomText(r)), Yes: r.IntN(2) == 0,
		Int: number(r), Int8: int8(r.Uint64()), Int16: int16(r.Uint64()), Int32: int32(r.Uint64()), Int64: int64(r.Uint64()),
		Uint: uint(r.Uint64()), Uint8: uint8(r.Uint64()), Uint16: uint16(r.Uint64()), Uint32: r.Uint32(), Uint64: r.Uint64(),
		Float32: float32(randomFloat(r, 32)), Float64: randomFloat(r, 64),
		Time: moment(), Address: netip.AddrFrom4([4]byte{byte(r.Uint64()), 0, 113, byte(r.Uint64())}), Grade: toolGrade(1 + r.IntN(2)),
		Bytes: []byte(randomText(r)),
		List:  randomList(r, 0, randomText),
		Lists: randomList(r, 0, func(r *rand.Rand) []int { return randomList(r, 0, number) }),
		Pair:  [2]float64{randomFloat(r, 64), randomFloat(r, 64)},
		Map:   map[toolColor]int{toolColor(randomText(r)): number(r), "b": number(r)},
		Maps:  map[string][]string{randomText(r): randomList(r, 0, randomText)},
		Home:  address(), Homes: randomList(r, 0, func(*rand.Rand) toolAddress { return address() }),
		ByName:   map[string]toolAddress{randomText(r): address()},
		Pointers: randomList(r, 0, func(r *rand.Rand) *int { return maybe(r, number(r)) }),
		MaybeInt: maybe(r, r.Int64()), MaybeText: maybe(r, randomText(r)), MaybeHome: maybe(r, address()),
		Untagged: r.IntN(2) == 0,
	}
	k.Stamp.Time = moment()
	k.Stamp.Text = k.Stamp.Format(time.RFC3339Nano)
	k.Raw, _ = json.Marshal(k.Maps)
	if r.IntN(2) == 0 {
		k.EmptyText, k.EmptyFloat, k.EmptyList = randomText(r), randomFloat(r, 64), randomList(r, 1, number)
		k.ZeroTime, k.NameOmitted = moment(), number(r)
	}
	return k
}

func randomText(r *rand.Rand) string {
	alphabet := []rune("aZ09 \"\\/<&>\n\t\u0000é東🌦\u2028{}[]:,")
	text := make([]rune, r.IntN(12))
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

// randomFloat returns a number with random bits, so every magnitude occurs.
func randomFloat(r *rand.Rand, bits int) float64 {
	for {
		f := math.Float64frombits(r.Uint64())
		if bits == 32 {
			f = float64(math.Float32frombits(r.Uint32()))
		}
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

func randomList[T any](r *rand.Rand, atLeast int, item func(*rand.Rand) T) []T {
	list := make([]T, atLeast+r.IntN(4))
	for i := range list {
		list[i] = item(r)
	}
	return list
}

func maybe[T any](r *rand.Rand, value T) *T {
	if r.IntN(2) == 0 {
		return nil
	}
	return &value
}

func TestRandomValuesArriveAsTheyWereSent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := newToolHandler(t)
	got := addTool[toolKinds](t, h, "all_kinds")
	for range 200 {
		want := randomKinds(r)
		flat := flatBody(t, want)
		for form, body := range map[string]map[string]any{
			"flat":                       flat,
			"under parameters":           {"parameters": flat, "session_metadata": map[string]any{}},
			"flat, numbers in strings":   inStrings(flat),
			"arguments, nums in strings": {"arguments": inStrings(flat)},
		} {
			*got = toolKinds{}
			encoded, err := json.Marshal(body)
			require.NoError(t, err)
			require.Equal(t, "done", toolReply(t, postTool(h, "/all_kinds", string(encoded))), form)
			require.Equal(t, want, *got, form)
		}
	}
}

// flatBody returns the members of a body as the service writes it.
func flatBody(t *testing.T, arguments any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(arguments)
	require.NoError(t, err)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(encoded, &members))
	body := map[string]any{"session_metadata": map[string]any{"session_id": "s-1"}}
	for name, value := range members {
		body[name] = value
	}
	return body
}

// inStrings returns body with its outer numbers and booleans put in strings.
func inStrings(body map[string]any) map[string]any {
	changed := make(map[string]any, len(body))
	for name, value := range body {
		changed[name] = value
		raw, ok := value.(json.RawMessage)
		if ok && name != "raw" && strings.ContainsRune("-0123456789tf", rune(raw[0])) {
			changed[name] = string(raw)
		}
	}
	return changed
}

// No argument may share memory with a buffer that the next call uses.
func TestArgumentsOutliveTheirCall(t *testing.T) {
	type keeping struct {
		Raw  json.RawMessage   `json:"raw" jsonschema:"Raw"`
		Raws []json.RawMessage `json:"raws" jsonschema:"Raws"`
		Text string            `json:"text" jsonschema:"Text"`
	}
	h := newToolHandler(t)
	got := addTool[keeping](t, h, "keep")
	body := func(letter string) string {
		word := `"` + strings.Repeat(letter, 50) + `"`
		return `{"raw":` + word + `,"raws":[` + word + `],"text":` + word + `}`
	}
	require.Equal(t, "done", toolReply(t, postTool(h, "/keep", body("a"))))
	kept := *got
	for range 20 {
		require.Equal(t, "done", toolReply(t, postTool(h, "/keep", body("b"))))
	}
	want := strings.Repeat("a", 50)
	assert.Equal(t, `"`+want+`"`, string(kept.Raw))
	assert.Equal(t, `"`+want+`"`, string(kept.Raws[0]))
	assert.Equal(t, want, kept.Text)
}
