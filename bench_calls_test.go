package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
)

// The benchmarks measure one call over a transport in memory, and the same call
// written with net/http and encoding/json alone.

const benchID = "3fa85f64-5717-4562-b3fc-2c963f66afa6"

// inMemory answers every request with the same body.
func inMemory(body []byte) *http.Client {
	return &http.Client{Transport: answer(http.StatusOK, string(body), "Content-Type: application/json")}
}

func benchDocument(b *testing.B) []byte {
	doc, err := os.ReadFile("testdata/head_2048.json")
	if err != nil {
		b.Fatal(err)
	}
	doc = bytes.TrimSpace(doc)
	if len(doc) != 2048 {
		b.Fatalf("the document has %d bytes", len(doc))
	}
	return doc
}

func BenchmarkGet(b *testing.B) {
	doc := benchDocument(b)
	b.Run("heads", func(b *testing.B) {
		client, err := New("https://api.example.com/v1", "token", WithHTTPClient(inMemory(doc)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.Heads.Get(context.Background(), benchID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		client := inMemory(doc)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rawGet(client); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := json.Unmarshal(doc, new(rawHead)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json-Head", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := json.Unmarshal(doc, new(Head)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func rawGet(client *http.Client) (*rawHead, error) {
	req, err := http.NewRequestWithContext(context.Background(), "GET", "https://api.example.com/v1/head/"+benchID, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "raw")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	head := new(rawHead)
	return head, json.Unmarshal(body, head)
}

func benchUpdate() *HeadUpdate {
	return NewHeadUpdate().Voice("elevenlabs", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5").Greetings("Welcome! Ask me about opening hours, tickets or the way.")
}

func BenchmarkUpdate(b *testing.B) {
	u := benchUpdate()
	body := u.document(benchID)
	b.Logf("body of %d bytes", len(body))
	b.Run("heads", func(b *testing.B) {
		client, err := New("https://api.example.com/v1", "token", WithHTTPClient(inMemory(nil)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := client.Heads.Update(context.Background(), benchID, u); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("heads-builder", func(b *testing.B) {
		client, err := New("https://api.example.com/v1", "token", WithHTTPClient(inMemory(nil)))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := client.Heads.Update(context.Background(), benchID, benchUpdate()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		client := inMemory(nil)
		fields := rawUpdate{ID: benchID, TTSProvider: "elevenlabs", TTSVoice: "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5", Greetings: "Welcome! Ask me about opening hours, tickets or the way."}
		b.ReportAllocs()
		for b.Loop() {
			if err := rawPut(client, &fields); err != nil {
				b.Fatal(err)
			}
		}
	})
}

type rawUpdate struct {
	ID          string `json:"id"`
	TTSProvider string `json:"ttsProvider"`
	TTSVoice    string `json:"ttsVoice"`
	Greetings   string `json:"greetings"`
}

func rawPut(client *http.Client, fields *rawUpdate) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), "PUT", "https://api.example.com/v1/head/update", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "raw")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

// rawHead is a head as a program without this package would declare it.
type rawHead struct {
	ID                        string   `json:"id"`
	Name                      string   `json:"name"`
	Alias                     string   `json:"alias"`
	Language                  string   `json:"language"`
	LanguageSpeechRecognition string   `json:"languageSpeechRecognition"`
	TTSProvider               string   `json:"ttsProvider"`
	TTSVoice                  string   `json:"ttsVoice"`
	OperationMode             string   `json:"operationMode"`
	OCProvider                string   `json:"ocProvider"`
	Greetings                 string   `json:"greetings"`
	IsRandomSuggestions       bool     `json:"isRandomSuggestions"`
	Phrases                   []string `json:"phrases"`
	Suggestions               []string `json:"suggestions"`
	PromptConfig              struct {
		SystemPrompt string `json:"system_prompt"`
	} `json:"promptConfig"`
	VoiceflowAPIKey             *string           `json:"voiceflowApiKey"`
	CustomWords                 map[string]string `json:"customWords"`
	PublicURL                   string            `json:"publicUrl"`
	FileURL                     *string           `json:"fileUrl"`
	PluginOperationalModeConfig json.RawMessage   `json:"pluginOperationalModeConfig"`
	SemanticThreshold           float64           `json:"semanticThreshold"`
	VideoStreaming              bool              `json:"videoStreaming"`
	Splitter                    bool              `json:"splitter"`
	EnableEvents                bool              `json:"enableEvents"`
	ConversationSettings        struct {
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
			URL         string `json:"url"`
			Parameters  []struct {
				Name        string `json:"name"`
				Type        string `json:"type"`
				Description string `json:"description"`
			} `json:"parameters"`
		} `json:"tools"`
	} `json:"conversationSettings"`
	CreatedAt            string   `json:"createdAt"`
	UpdatedAt            string   `json:"updatedAt"`
	PublicID             string   `json:"publicId"`
	OrgID                string   `json:"orgId"`
	OrgPublicID          string   `json:"orgPublicId"`
	HeadVisualID         string   `json:"headVisualId"`
	IsActive             bool     `json:"isActive"`
	TTSStream            bool     `json:"ttsStream"`
	ExpirationSeconds    float64  `json:"expirationSeconds"`
	AllowedOrigins       []string `json:"allowedOrigins"`
	AllowedIframeOrigins []string `json:"allowedIframeOrigins"`
	HeadVisualVideoURL   string   `json:"headVisualVideoUrl"`
	PosterVideoImage     string   `json:"posterVideoImage"`
	TTSDisplayName       string   `json:"ttsDisplayName"`
	Organisation         struct {
		ID               string  `json:"id"`
		APIKey           string  `json:"apiKey"`
		Name             string  `json:"name"`
		PublicID         string  `json:"publicId"`
		SubscriptionType string  `json:"subscriptionType"`
		Slots            float64 `json:"slots"`
		Streaming        bool    `json:"streaming"`
		IsActive         bool    `json:"isActive"`
	} `json:"organisation"`
}
