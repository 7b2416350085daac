package headsfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

const (
	stagingID    = "aaaaaaaa-0000-4000-8000-000000000001"
	productionID = "bbbbbbbb-0000-4000-8000-000000000001"
)

// both describes two environments, in lines 1 to 3.
const both = `environments:
  staging: {base_url: "https://api-staging.example.com", token: {env: HEADS_STAGING_TOKEN}, values: {app: "https://staging.example.com"}}
  production: {base_url: {env: PROD_URL}, token: {env: HEADS_PROD_TOKEN}, values: {app: "https://app.example.com"}, protect: true}
`

func TestAnEnvironmentFillsInItsValues(t *testing.T) {
	file := parse(t, both+`defaults: {set: {greetings: "I am ${env}, $${app}, $$${app} $5 {x}", alias: &a "${app}"}}
heads:
  - id: {staging: `+stagingID+`, production: `+productionID+`}
    label: Lobby ${env}
    set: {name: *a, pluginOperationalModeConfig: {"${key}": ["${app}/x", 1]}}
    webhooks: [{url: "${app}/heads/events", events: [start_conversation]}]
  - id: {staging: null, production: bbbbbbbb-0000-4000-8000-000000000002}
    label: Annex
`, NoFolder)
	assert.Equal(t, []string{"staging", "production"}, file.Names())
	specs, err := file.Specs("staging")
	require.NoError(t, err)
	require.Len(t, specs, 1, "the other one is not there")
	assert.Equal(t, []string{stagingID, "Lobby staging", "https://staging.example.com/heads/events"}, []string{specs[0].ID, specs[0].Label, specs[0].Webhooks[0].URL})
	assert.Equal(t, "I am staging, ${app}, $${app} $5 {x}", specs[0].Set["greetings"])
	assert.Equal(t, "https://staging.example.com", specs[0].Set["name"], "an alias")
	document, err := rawjson.Encode(specs[0].Set["pluginOperationalModeConfig"])
	require.NoError(t, err)
	assert.JSONEq(t, `{"${key}":["https://staging.example.com/x",1]}`, string(document), "a key is no text")
	heads, err := file.Heads("production")
	require.NoError(t, err)
	require.Len(t, heads, 2)
	assert.Equal(t, "https://app.example.com", heads[0].Spec.Set["alias"])
	assert.Equal(t, map[string]string{"staging": "", "production": "bbbbbbbb-0000-4000-8000-000000000002"}, heads[1].IDs)
	assert.True(t, file.Environments[1].Protect)
	assert.Equal(t, "${x} $${y}", specsIn(t, "", "heads: [{id: a, label: \"${x} $${y}\"}]", NoFolder)[0].Label, "a file without environments means what it meant")
}

func TestFaultsOfEnvironmentsHaveLineAndColumn(t *testing.T) {
	id := "{staging: " + stagingID + ", production: " + productionID + "}"
	one := func(rest string) string { return both + "heads:\n  - id: " + id + "\n    " + rest + "\n" }
	environment := func(rest string) string {
		return "environments:\n  staging: {" + rest + "}\nheads: [{id: {staging: " + stagingID + "}}]\n"
	}
	const base = "base_url: https://a.example.com, token: {env: T}"
	for name, row := range map[string]struct{ text, want string }{
		"unknown value":             {one(`label: "a ${ap} b"`), `6:12: ${ap} is no value of the environments (did you mean app?)`},
		"unknown value in defaults": {both + "defaults:\n  set: {alias: \"${x}\"}\nheads: [{id: " + id + "}]\n", "5:16: ${x} is no value"},
		"no end":                    {one(`label: "a ${app b"`), "6:12: a ${ has no }; write ${NAME}, or $${ for the text ${"},
		"secret":                    {one(`set: {voiceflowApiKey: "s3cr${et}"}`), "6:28: ${…} is no value"},
		"id missing":                {both + "heads: [{id: {staging: " + stagingID + "}}]\n", "4:14: the id for production is missing; give it, or null"},
		"plain id":                  {both + "heads: [{id: " + stagingID + "}]\n", "4:14: the head has no id for each environment; write them as in {staging: UUID, production: null}"},
		"no id":                     {both + "heads:\n  - label: Lobby\n", "5:5: the head has no id for each environment"},
		"id null":                   {both + "heads:\n  - id: null\n", "5:5: the head has no id for each environment"},
		"id twice":                  {both + "heads:\n  - id: " + id + "\n  - id: {staging: " + strings.ToUpper(stagingID) + ", production: null}\n", "6:19: this id is given twice for staging, first in line 5"},
		"id in two":                 {both + "heads: [{id: {staging: " + stagingID + ", production: " + stagingID + "}}]\n", "4:74: this id is given for production, and for staging in line 4"},
		"id in the wrong one":       {both + "heads:\n  - id: " + id + "\n  - id: {staging: " + productionID + ", production: null}\n", "6:19: this id is given for staging, and for production in line 5"},
		"unknown environment":       {both + "heads: [{id: {stagin: " + stagingID + ", staging: null, production: null}}]\n", `4:15: there is no environment "stagin" (did you mean staging?)`},
		"public id":                 {both + "heads: [{id: {staging: li-1, production: null}}]\n", `4:24: "li-1" is not the id of a head`},
		"unknown key":               {environment(base + ", valeus: {}"), `2:63: unknown key "valeus" (did you mean values?)`},
		"name":                      {"environments: {Staging: {" + base + "}}\nheads: []\n", `1:16: "Staging" is no name of an environment`},
		"no environments":           {"environments: {}\nheads: []\n", "1:15: there are no environments"},
		"no base URL":               {environment("token: {env: T}"), "2:12: base_url is missing"},
		"base URL over http":        {environment("base_url: http://a.example.com"), "2:23: this URL "},
		"chat URL":                  {environment(base + ", chat_url: nowhere"), "2:73: this URL "},
		"token":                     {environment("base_url: https://a.example.com, token: s3cret"), "2:53: a token does not belong in a file; put it into a variable, and write {env: NAME}"},
		"token as a variable":       {environment("base_url: https://a.example.com, token: {env: s3cret-of}"), "2:59: a variable has a name of letters, digits and _"},
		"key of a variable":         {environment("base_url: {var: X}"), `2:24: unknown key "var"`},
		"value named env":           {environment(base + ", values: {env: x}"), "2:72: ${env} is the name of the environment"},
		"name of a value":           {environment(base + ", values: {a.b: x}"), `2:72: "a.b" is no name of a value`},
		"value in a value":          {environment(base + `, values: {a: "${env}"}`), "2:75: a value is filled in as it is"},
		"value of one alone": {"environments:\n  a: {" + base + ", values: {x: y}}\n  b: {" + base + "}\nheads: [{id: {a: null, b: " + stagingID + "}}]\n",
			"3:6: the value x of a is missing for b"},
		"value of the second alone": {"environments:\n  a: {" + base + "}\n  b: {" + base + ", values: {x: y}}\nheads: [{id: {a: null, b: " + stagingID + "}}]\n",
			"2:6: the value x of b is missing for a"},
	} {
		file, environment := parse(t, row.text, NoFolder), ""
		if len(file.Environments) > 0 {
			environment = file.Environments[len(file.Environments)-1].Name
		}
		_, err := file.Heads(environment)
		require.ErrorContains(t, err, row.want, name)
		assert.NotContains(t, err.Error(), "s3cr", name)
	}
}

func TestAllFaultsOfAFileAreToldAtOnce(t *testing.T) {
	_, err := parse(t, both+"heads:\n  - {id: "+stagingID+", lable: x}\n  - {id: {staging: x, production: null}, label: \"${a}\"}\n", NoFolder).Heads("staging")
	for _, want := range []string{"5:10: the head has no id", "5:48: unknown key \"lable\"", "6:20: \"x\"", "6:49: ${a}"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestTextsThatAreFilledInAreBounded(t *testing.T) {
	long := strings.ReplaceAll(both, "https://staging.example.com", strings.Repeat("x", 1<<19))
	_, err := parse(t, long+"heads: [{id: {staging: "+stagingID+", production: null}, label: \""+strings.Repeat("${app}", 1<<18)+"\"}]\n", NoFolder).Heads("staging")
	assert.ErrorContains(t, err, "the texts have more than 4194304 bytes")
}

func TestAFileOfFaultsIsReadAtOnce(t *testing.T) {
	values, label := "", ""
	for n := range 5_000 {
		values += fmt.Sprintf("value_%d: x, ", n)
		label += fmt.Sprintf("${valeu_%d}", n)
	}
	text := "environments:\n  staging: {base_url: \"https://a.example.com\", values: {" + values + "}}\nheads:\n" +
		strings.Repeat("  - {id: {staging: "+stagingID+"}, lable: x, label: \""+label+"\"}\n", 30)
	begun := time.Now()
	_, err := parse(t, text, NoFolder).Heads("staging")
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, yamltext.MaxFaults+1)
	assert.Regexp(t, `^there are \d+ more faults; mend these first$`, lines[yamltext.MaxFaults])
	assert.LessOrEqual(t, strings.Count(err.Error(), "did you mean"), yamltext.MaxHints)
	assert.Less(t, time.Since(begun), 10*time.Second, "it took over 78 s")
}

func TestTokensGoToOneHost(t *testing.T) {
	for name, row := range map[string]struct{ first, second, want string }{
		"two hosts":           {`base_url: "https://a.example.com", token: {env: HEADS_A}`, `base_url: "https://b.example.com", token: {env: HEADS_A}`, "3:49: the token in HEADS_A is that of a too, which has another base_url"},
		"two ports":           {`base_url: "https://a.example.com", token: {env: HEADS_A}`, `base_url: "https://a.example.com:444", token: {env: HEADS_A}`, "the token in HEADS_A"},
		"two variables":       {`base_url: {env: A}, token: {env: HEADS_A}`, `base_url: {env: B}, token: {env: HEADS_A}`, "the token in HEADS_A"},
		"a variable and text": {`base_url: {env: A}, token: {env: HEADS_A}`, `base_url: "https://b.example.com", token: {env: HEADS_A}`, "the token in HEADS_A"},
		"another variable":    {`base_url: {env: A}, token: {env: AWS_SECRET_ACCESS_KEY}`, `base_url: {env: A}`, "2:34: the variable of a token begins with HEADS_"},
		"two paths":           {`base_url: "https://a.example.com/one", token: {env: HEADS_A}`, `base_url: "https://A.example.com/two", token: {env: HEADS_A}`, ""},
		"one variable":        {`base_url: {env: A}, token: {env: HEADS_A}`, `base_url: {env: A}, token: {env: HEADS_A}`, ""},
	} {
		_, err := parse(t, "environments:\n  a: {"+row.first+"}\n  b: {"+row.second+"}\nheads: [{id: {a: "+stagingID+", b: null}}]\n", NoFolder).Heads("a")
		if row.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, row.want, name)
		}
	}
}

func TestALabelOfSeveralHeadsIsNoChoice(t *testing.T) {
	heads, err := parse(t, both+"heads:\n  - {id: {staging: "+stagingID+", production: null}, label: A}\n  - {id: {staging: aaaaaaaa-0000-4000-8000-000000000002, production: null}, label: A}\n", NoFolder).Heads("staging")
	require.NoError(t, err)
	_, err = Select(heads, "staging", []string{"A"})
	require.ErrorContains(t, err, `2 heads have the label "A"; give the id`)
	found, err := Select(heads, "staging", []string{stagingID, strings.ToUpper(stagingID)})
	require.NoError(t, err)
	assert.Len(t, found, 1, "each once")
}
