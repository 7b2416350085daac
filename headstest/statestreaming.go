package headstest

import (
	"net/http"
	"slices"
	"strings"

	heads "github.com/headsapi/heads-go"
)

// mayStream checks the conditions of a switch between legacy and streaming, in
// either direction.
func (c *core) mayStream(h document, streaming bool) error {
	v, ok := c.st.visuals[h.str("headVisualId")]
	if !ok {
		return refuse(http.StatusConflict, "the head has no visual; only a head whose visual is in mode default can change between legacy and streaming")
	}
	if v.mode != heads.VisualModeDefault {
		return refuse(http.StatusConflict, "the head's visual is in mode %q; only a head whose visual is in mode default can change between legacy and streaming, so create a new head", string(v.mode))
	}
	if !streaming {
		return nil
	}
	return c.voiceStreams(h.str("ttsProvider"), h.str("ttsVoice"))
}

// voiceStreams returns an error for a voice that can't stream.
func (c *core) voiceStreams(provider, voice string) error {
	capable := slices.ContainsFunc(c.cfg.providers, func(id string) bool { return strings.EqualFold(id, provider) })
	if !capable {
		return refuse(http.StatusUnprocessableEntity, "the text-to-speech provider %q is not capable of streaming; set a voice of %s first",
			provider, strings.Join(c.cfg.providers, " or "))
	}
	if slices.Contains(c.cfg.mutedVoices, voice) {
		return refuse(http.StatusUnprocessableEntity, "the voice %q does not support streaming; set another voice first", voice)
	}
	return nil
}

// setStreaming switches a head to the other mode. Streaming turns text splitting
// off, and a switch back to legacy does not turn it on again.
func (c *core) setStreaming(h document, streaming bool) {
	h.set("videoStreaming", streaming)
	if streaming {
		h.set("splitter", false)
	}
	if !c.cfg.staleAddresses {
		h.set("publicUrl", c.accessAddress(h))
	}
	h.touch()
}

// setSplitter turns text splitting on or off. A head can't split and stream, so
// turning it on switches a streaming head back to legacy.
func (c *core) setSplitter(h document, on bool) {
	h.set("splitter", on)
	h.touch()
	if on && h.is("videoStreaming") {
		c.setStreaming(h, false)
	}
}
