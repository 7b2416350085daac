package heads

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/rawjson"
)

var (
	errEmptyAnswer error = answerFault("it is empty")
	errNullAnswer  error = answerFault("it is null")
)

// A type that reads its own JSON has a method decode, and one that writes its own
// has a method document. UnmarshalJSON and MarshalJSON only call them. Requests
// are written by document too. All other types have tags for encoding/json.

// proveID compares the id in an answer with the one in the request. what names
// the document in the error, which shows neither id.
func proveID(what, found, asked string) error {
	switch {
	case found == "":
		return answerFault("it holds no id, so it is not the " + what + " that was asked for")
	case !strings.EqualFold(found, asked):
		return answerFault("it is not the " + what + " that was asked for: its id differs")
	}
	return nil
}

// decodeAnswer reads a document of the service. The caller may reuse data
// afterwards.
func decodeAnswer(data []byte, into interface{ decode(document []byte) error }) error {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return errEmptyAnswer
	case !json.Valid(data):
		return json.Unmarshal(data, new(json.RawMessage)) // the error that says where
	}
	return into.decode(data)
}

// decodeObject reads a document that must be an object into a struct.
func decodeObject(document []byte, into any, rules exactjson.Rules) error {
	if rawjson.IsNull(document) {
		return errNullAnswer
	}
	return exactjson.Decode(document, into, rules)
}

// unmarshal is decode as an UnmarshalJSON method, for which null changes nothing.
func unmarshal(document []byte, decode func(document []byte) error) error {
	if rawjson.IsNull(document) {
		return nil
	}
	return decode(document)
}

func newDecodeError(operation string, document []byte, err error) *DecodeError {
	return &DecodeError{Operation: operation, Body: NewRaw(document[:min(len(document), maxDecodeBody)]), Err: err}
}
