package main

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

func showSecretsFlag(cmd *cobra.Command, show *bool) {
	cmd.Flags().BoolVar(show, "show-secrets", false, "show keys and tokens instead of [redacted]")
}

// maskBody masks a body of the service as Head.Redacted masks a head. In one that is
// no JSON, such as the page of a proxy, it masks the URLs.
func maskBody(body []byte) []byte {
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		return []byte(mask.Text(string(body)))
	}
	return maskCallbacks(mask.JSON(body, mask.SecretsOf(body)...))
}

// maskCallbacks takes the path tokens out of the URLs of tools and webhooks, at
// any depth.
func maskCallbacks(value []byte) []byte {
	switch rawjson.Kind(value) {
	case "object":
		tool, _ := rawjson.Value(value, "name")
		var members [][]byte
		for m := range rawjson.Members(value) {
			masked := maskCallbacks(m.Value)
			if key := string(m.Key); rawjson.Kind(m.Value) == "string" && (key == "url" || key == "webhookUrl") {
				masked = rawjson.String(mask.CallbackURL(rawjson.Unquote(m.Value), unquote(tool)))
			}
			members = append(members, rawjson.AppendMember(nil, string(m.Key), masked))
		}
		return enclose('{', members, '}')
	case "array":
		var elements [][]byte
		for element := range rawjson.Elements(value) {
			elements = append(elements, maskCallbacks(element))
		}
		return enclose('[', elements, ']')
	}
	return bytes.TrimSpace(value)
}

func unquote(value []byte) string {
	if rawjson.Kind(value) != "string" {
		return ""
	}
	return rawjson.Unquote(bytes.TrimSpace(value))
}

func enclose(open byte, parts [][]byte, end byte) []byte {
	return append(append([]byte{open}, bytes.Join(parts, []byte{','})...), end)
}
