package headsotel

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// prometheus is the base URL of the test's Prometheus server.
type prometheus string

var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// startPrometheus starts a server that ends with the test. Its data, which is OpenMetrics text with
// times, is in dir.
func startPrometheus(t *testing.T, dir string, openMetrics []byte) prometheus {
	t.Helper()
	text := filepath.Join(t.TempDir(), "openmetrics")
	require.NoError(t, os.WriteFile(text, openMetrics, 0o600))
	out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", text, dir).CombinedOutput()
	require.NoError(t, err, "promtool and prometheus are needed; they are in Debian's package prometheus\n%s", out)

	cmd := exec.Command("prometheus", "--config.file", os.DevNull, "--storage.tsdb.path", dir, "--web.listen-address", "127.0.0.1:0")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var address, seen string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		seen += lines.Text() + "\n"
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			address = match[1]
		}
		if address != "" && strings.Contains(seen, "Server is ready") { // the lines come in any order
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return prometheus("http://" + address)
		}
	}
	require.Fail(t, "prometheus has ended", seen)
	return ""
}

// series is one result of a query.
type series struct {
	labels map[string]string
	value  float64
}

func (p prometheus) query(t *testing.T, expression string, at time.Time) (all []series) {
	t.Helper()
	response, err := http.PostForm(string(p)+"/api/v1/query", url.Values{"query": {expression}, "time": {at.Format(time.RFC3339)}})
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any // the time, and the value as text
			}
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Empty(t, answer.Error, expression)
	for _, r := range answer.Data.Result {
		value, err := strconv.ParseFloat(r.Value[1].(string), 64)
		require.NoError(t, err)
		all = append(all, series{r.Metric, value})
	}
	return all
}
