// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// snippet is the entry of a client's file that the documents of mcp-sandboxd have people write.
const snippet = `{"type": "stdio", "command": "docker", "args": [
	"run", "--rm", "-i", "-p", "8080:8080",
	"-e", "PORT=8080", "-e", "MCP_PATH=/mcp", "-e", "SANDBOX_BACKEND=docker", "-e", "SANDBOX_IMAGE=ghcr.io/jeliasson/mcp-sandboxd-sandbox:latest",
	"-v", "/var/run/docker.sock:/var/run/docker.sock",
	"ghcr.io/jeliasson/mcp-sandboxd:latest"
]}`

// snippetArgs are its arguments with our image in place of theirs, and more options before it.
func snippetArgs(t *testing.T, options ...string) []string {
	t.Helper()
	var s struct{ Args []string }
	if err := json.Unmarshal([]byte(snippet), &s); err != nil {
		t.Fatal(err)
	}
	last := len(s.Args) - 1
	return append(append(s.Args[:last:last], options...), "sandpit:test")
}

// TestTheServersOwnImage has an Engine run the server, which makes sandboxes on that Engine.
func TestTheServersOwnImage(t *testing.T) {
	needRoot(t)
	h := newEngineHost(t)
	t.Run("ByTheSnippetOfMCPSandboxd", func(t *testing.T) { h.bySnippet(t) })
	t.Run("AClientThatIsKilledLeavesNothing", func(t *testing.T) { h.killed(t) })
	t.Run("AVolumeKeepsWhatThereIs", func(t *testing.T) { h.withVolume(t) })
	t.Run("WithFewRightsAndNoInput", func(t *testing.T) { h.withFewRights(t) })
	if left := h.left(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// stdio is a client that started a server by docker run -i.
type stdio struct {
	*agent
	cmd *exec.Cmd
	t   *testing.T
}

// lockedBuffer is a buffer that one goroutine writes and another reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (h *engineHost) stdio(t *testing.T, args ...string) *stdio {
	t.Helper()
	cmd := h.Docker(args...)
	var log lockedBuffer
	cmd.Stderr = &log
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", log.String())
		}
	})
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	return &stdio{&agent{session: session}, cmd, t}
}

// runs has commands run in the sandbox of an identifier, and returns what the run says.
func (s *stdio) runs(identifier, as string, commands ...string) finished {
	s.t.Helper()
	var list []any
	for _, c := range commands {
		list = append(list, map[string]any{"shell": c})
	}
	r, err := s.session.CallTool(s.t.Context(), &sdk.CallToolParams{Name: "run_sandbox", Arguments: map[string]any{
		"identifier": identifier, "commands": list, "options": map[string]any{"await_completion": true, "await_timeout_ms": 60_000, "as_user": as},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		s.t.Fatal(err)
	}
	var out finished
	if err := json.Unmarshal(b, &out); err != nil || out.Final.State == "" {
		s.t.Fatalf("%s: %v\n%v", b, err, r.Content)
	}
	return out
}

type finished struct {
	RunID string `json:"run_id"`
	Final struct {
		State    string
		Sandbox  string `json:"sandbox_container_id"`
		Commands []struct {
			Stdout   string
			ExitCode int `json:"exit_code"`
			Status   string
		}
		Artifacts []struct{ Path string }
	}
}

// said is what the commands printed.
func (f finished) said() string {
	var b strings.Builder
	for _, c := range f.Final.Commands {
		b.WriteString(c.Stdout)
	}
	return b.String()
}

// hasBox reports whether there is a container of a sandbox's.
func (h *engineHost) hasBox(id string) bool {
	return id != "" && h.docker("ps", "-aq", "--filter", "label=dev.sandpit.sandbox="+id) != ""
}

// bySnippet is what the smoke test of mcp-sandboxd does, by the client that its documents have people set up.
func (h *engineHost) bySnippet(t *testing.T) {
	s := h.stdio(t, snippetArgs(t)...)
	if v := s.session.InitializeResult().ServerInfo; v == nil || v.Version != version {
		t.Errorf("it is %+v", v)
	}
	listed, err := s.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"delete_sandbox", "restart_sandbox", "run_sandbox"}) {
		t.Errorf("the tools are %v", names)
	}
	server := h.docker("ps", "-q", "--filter", "ancestor=sandpit:test")
	token := h.token(server)

	first := s.runs("smoke", "sandbox", "id -u", "echo kept >note; echo made >/artifacts/made.txt")
	if first.Final.State != "completed" || first.said() != "1000\n" {
		t.Fatalf("the first run: %+v", first)
	}
	second := s.runs("smoke", "root", "id -u", "cat /workspace/note")
	if second.said() != "0\nkept\n" || second.Final.Sandbox != first.Final.Sandbox {
		t.Errorf("the second run is not in the same sandbox: %+v", second)
	}
	if !h.hasBox(first.Final.Sandbox) {
		t.Errorf("no container is the sandbox %s", first.Final.Sandbox)
	}
	for _, run := range []string{first.RunID, "latest"} {
		if status, body := h.get(server, token, "/artifacts/smoke/"+run+"/made.txt"); status != http.StatusOK || body != "made\n" {
			t.Errorf("the artifact of %s: %d %q", run, status, body)
		}
	}
	if status, _ := h.get(server, "", "/artifacts/smoke/latest/made.txt"); status != http.StatusUnauthorized {
		t.Errorf("the artifact without a token: %d", status)
	}
	if status, body := h.get(server, token, "/metrics"); status != http.StatusOK || !strings.Contains(body, "sandpit_") {
		t.Errorf("the metrics: %d", status)
	}
	// The Engine's socket is the server's, and nobody's inside.
	if got := s.runs("smoke", "root", "ls /run /var/run 2>/dev/null; cat /proc/self/mountinfo").said(); !strings.Contains(got, " /.sandpit/agent ") || strings.Contains(got, "docker.sock") {
		t.Errorf("inside there is %q", got)
	}
	s.ask(t, "restart_sandbox", map[string]any{"identifier": "smoke"})
	if third := s.runs("smoke", "sandbox", "cat note 2>/dev/null; echo $?"); third.said() != "1\n" {
		t.Errorf("after a restart: %+v", third)
	}
	s.ask(t, "delete_sandbox", map[string]any{"identifier": "smoke"})
	if h.hasBox(first.Final.Sandbox) {
		t.Error("the container is there after the deletion")
	}

	// What is left when the client goes, is deleted with the server, whose records are.
	s.runs("left", "sandbox", "sleep 1000 & echo $!")
	if err := s.session.Close(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if left := h.left(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// killed: the docker program of a client that is killed says goodbye to nobody. Its server sees that, and goes with its sandboxes.
func (h *engineHost) killed(t *testing.T) {
	s := h.stdio(t, snippetArgs(t)...)
	s.runs("left", "sandbox", "sleep 1000 >/dev/null 2>&1 &")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.session.Close() // which says that it was killed
	for end := time.Now().Add(startBound); ; time.Sleep(100 * time.Millisecond) {
		left := h.left()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left are %v", left)
		}
	}
}

// withVolume: a server whose data lies in a volume finds what the one before it left.
func (h *engineHost) withVolume(t *testing.T) {
	args := snippetArgs(t, "-v", "sandpit:/var/lib/sandpit", "-e", "LOG_HTTP_REQUESTS=true")
	s := h.stdio(t, args...)
	run := s.runs("kept", "sandbox", "echo here >note")
	box := run.Final.Sandbox
	// The events of a run are a stream that ends, also where requests are logged; of a run that there is not there is none.
	server := h.docker("ps", "-q", "--filter", "ancestor=sandpit:test")
	token := h.token(server)
	if status, body := h.get(server, token, "/mcp/events?run_id="+run.RunID); status != http.StatusOK || !strings.Contains(body, "event: run_finished") {
		t.Errorf("the events of a run: %d\n%s", status, body)
	}
	if status, body := h.get(server, token, "/mcp/events?run_id=00000000-0000-4000-8000-000000000000"); status != http.StatusNotFound {
		t.Errorf("the events of a run that there is not: %d\n%s", status, body)
	}
	if err := s.session.Close(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if !h.hasBox(box) {
		t.Error("the sandbox went with the server")
	}
	s = h.stdio(t, args...)
	if got := s.runs("kept", "sandbox", "cat note").said(); got != "here\n" {
		t.Errorf("the next server's sandbox has %q", got)
	}
	s.ask(t, "delete_sandbox", map[string]any{"identifier": "kept"})
	if err := s.session.Close(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	h.docker("volume", "rm", "sandpit")
}

// withFewRights: the server of the compose file.
func (h *engineHost) withFewRights(t *testing.T) {
	h.docker(append([]string{"run", "-d", "--name", "few"}, append(composeRights(t),
		"-v", "/var/run/docker.sock:/var/run/docker.sock", "-e", "SANDBOX_IMAGE="+theirs, "-e", "SANDPIT_MCP_PROFILE=sandpit", "sandpit:test")...)...)
	const tool = "/usr/bin/sandpit"
	for end := time.Now().Add(startBound); ; time.Sleep(100 * time.Millisecond) {
		out, err := h.Docker("exec", "few", tool, "ls").CombinedOutput()
		if err == nil {
			break
		}
		if state := h.docker("inspect", "-f", "{{.State.Status}}", "few"); state != "running" || time.Now().After(end) {
			log, _ := h.Docker("logs", "few").CombinedOutput()
			t.Fatalf("it is %s: %s\n%s", state, out, log)
		}
	}
	h.docker("exec", "few", tool, "create", "--name", "box")
	if got := h.docker("exec", "few", tool, "exec", "box", "-c", "id -u; echo $((6*7)) >n; cat n"); got != "1000\n42" {
		t.Errorf("a command said %q", got)
	}
	h.docker("exec", "few", tool, "rm", "-f", "box")
	wait := h.Docker("wait", "few")
	ended := make(chan string, 1)
	go func() {
		out, err := wait.Output()
		ended <- fmt.Sprintf("%s%v", out, err)
	}()
	h.docker("stop", "few")
	if code := <-ended; code != "0\n<nil>" {
		t.Errorf("it ended with %s", code)
	}
	h.docker("rm", "-v", "few") // the Engine itself would do so a moment after it ended
}
