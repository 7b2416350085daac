package headstest

import (
	"net/url"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// mayStream checks the conditions of a switch between legacy and streaming, in
// either direction.
func (st *state) mayStream(h document, streaming bool) error {
	v, ok := st.visuals[h.str("headVisualId")]
	if !ok {
		return stateErrorf(wrongMode, "the head has no visual; only a head whose visual is in mode default can change between legacy and streaming")
	}
	if v.mode != heads.VisualModeDefault {
		return stateErrorf(wrongMode, "the head's visual is in mode %q; only a head whose visual is in mode default can change between legacy and streaming, so create a new head", string(v.mode))
	}
	if !streaming {
		return nil
	}
	return st.voiceStreams(h.str("ttsProvider"), h.str("ttsVoice"))
}

// voiceStreams returns an error for a voice that can't stream.
func (st *state) voiceStreams(provider, voice string) error {
	capable := slices.ContainsFunc(st.cfg.providers, func(id string) bool { return strings.EqualFold(id, provider) })
	if !capable {
		return stateErrorf(cantStream, "the text-to-speech provider %q is not capable of streaming; set a voice of %s first",
			provider, strings.Join(st.cfg.providers, " or "))
	}
	if slices.Contains(st.cfg.mutedVoices, voice) {
		return stateErrorf(cantStream, "the voice %q does not support streaming; set another voice first", voice)
	}
	return nil
}

// setStreaming switches a head to the other mode. Streaming turns text splitting
// off, and a switch back to legacy does not turn it on again.
func (st *state) setStreaming(h document, streaming bool) {
	h.set("videoStreaming", streaming)
	if streaming {
		h.set("splitter", false)
	}
	if !st.cfg.staleAddresses {
		h.set("publicUrl", st.accessURL(h))
	}
	h.touch()
}

// setSplitter turns text splitting on or off. A head can't split and stream, so
// turning it on switches a streaming head back to legacy.
func (st *state) setSplitter(h document, on bool) {
	h.set("splitter", on)
	h.touch()
	if on && h.is("videoStreaming") {
		st.setStreaming(h, false)
	}
}

// accessURL returns the access URL of a head in its mode. It keeps the head's
// key, or generates one for a head without a key.
func (st *state) accessURL(h document) string {
	base := st.cfg.chatURL
	if h.is("videoStreaming") {
		base = st.cfg.streamURL
	}
	key := ""
	if u, err := url.Parse(h.str("publicUrl")); err == nil {
		key = u.Query().Get("api_key")
	}
	if key == "" {
		key = st.ids.hex(16)
	}
	return base + "/" + url.PathEscape(h.str("orgPublicId")) + "/" + url.PathEscape(h.str("publicId")) +
		"?" + url.Values{"api_key": {key}}.Encode()
}
