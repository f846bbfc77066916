// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/test/mcp/taskstest"
)

// answers is a client whose person says this to every form.
func answers(said *sdk.ElicitResult, forms chan<- string) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		forms <- r.Params.Message
		return said, nil
	}}
}

// TestAPersonGrantsInTheirClient shows that an agent without a network reaches a host by one call more, where the
// operator has clients ask and its person says yes: by every way to the server, in both eras.
func TestAPersonGrantsInTheirClient(t *testing.T) {
	x := openIndexes(t)
	s := x.serve(t, "  elicit: true\n")
	asBearer := &http.Client{Transport: bearer(s.token)}
	fetch := args{"command": "curl -sS --fail --max-time 20 " + x.npmTLS + "/sandpit-pear"}
	yes := &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "allow for this sandbox"}}
	for _, way := range []struct {
		name, version string
		to            func() sdk.Transport
	}{
		{"http", "", func() sdk.Transport {
			return &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: asBearer}
		}},
		{"http-handshake", handshake, func() sdk.Transport {
			return &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: asBearer}
		}},
		{"sse", handshake, func() sdk.Transport { return &sdk.SSEClientTransport{Endpoint: s.url, HTTPClient: asBearer} }},
		{"stdio", "", func() sdk.Transport { return &sdk.CommandTransport{Command: s.command("mcp")} }},
		{"stdio-handshake", handshake, func() sdk.Transport { return &sdk.CommandTransport{Command: s.command("mcp")} }},
	} {
		t.Run(way.name, func(t *testing.T) {
			forms := make(chan string, 4)
			a := taskstest.New(t, agentOf(openGoWith(t, way.to(), way.version, answers(yes, forms)), nil), "box-"+way.name)
			a.Call("create_sandbox", args{"name": a.Sandbox})
			if got := a.Call("run_command", fetch); strings.Contains(got.Text, "exit 0 ") || !strings.Contains(got.Text, "request_network") {
				t.Fatalf("without a network:\n%s", got.Text)
			}
			a.Do("request_network", args{"allow": npmHost, "reason": "to fetch a package"}, "granted by the user", npmHost)
			if got := a.Call("run_command", fetch); !strings.Contains(got.Text, "exit 0 ") || !strings.Contains(got.Text, "sandpit-pear") {
				t.Errorf("with it:\n%s", got.Text)
			}
			// What was not shown is not reached.
			if got := a.Call("run_command", args{"command": "curl -sS --fail --max-time 20 " + x.pip + "/sandpit-apple/"}); strings.Contains(got.Text, "exit 0 ") {
				t.Errorf("another host is reached:\n%s", got.Text)
			}
			if len(forms) != 1 {
				t.Fatalf("%d forms were shown", len(forms))
			}
			if form := <-forms; !strings.Contains(form, "sandbox "+a.Sandbox) || !strings.Contains(form, "\n- "+npmHost+"\n") || !strings.Contains(form, `"to fetch a package"`) {
				t.Errorf("the form says\n%s", form)
			}
			out, err := s.command("activity", a.Sandbox).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "network.granted") || !strings.Contains(string(out), "elicitation") {
				t.Errorf("events: %v\n%s", err, out)
			}
		})
	}
}

// TestAServerThatIsKilledWhileAFormIsOpen grants nothing: the request waits for the next server's person.
func TestAServerThatIsKilledWhileAFormIsOpen(t *testing.T) {
	for _, version := range []string{"", handshake} {
		t.Run("version"+version, func(t *testing.T) {
			s := place(t)
			config := filepath.Join(s.dir, "config.yaml")
			if err := os.WriteFile(config, []byte("network:\n  elicit: true\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			by := func(cmd *exec.Cmd, _ string) { cmd.Args = append(cmd.Args, "--config", config) }
			first := s.begin(t, by)
			kill := func() {
				_ = first.Process.Signal(syscall.SIGKILL)
				_ = first.Wait() // it says that it was killed
			}
			killed := false
			defer func() {
				if !killed {
					kill()
				}
			}()
			open, killing := make(chan struct{}), make(chan struct{})
			c := openGoWith(t, &sdk.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(s.token)}, MaxRetries: -1}, version, &sdk.ClientOptions{
				ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					close(open)
					select {
					case <-killing:
					case <-ctx.Done():
					}
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "allow for this sandbox"}}, nil
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			called := make(chan answer, 1)
			go func() {
				got, _ := c.call(ctx, "request_network", args{"allow": "own.example"}) // an error is fine: the server is gone
				called <- got
			}()
			<-open
			kill()
			killed = true
			close(killing) // the answer comes to nobody
			cancel()
			if got := <-called; strings.Contains(got.text, "granted by") {
				t.Errorf("a server that is gone says\n%s", got.text)
			}
			second := s.begin(t, by)
			defer func() { s.empty(t); end(t, second, syscall.SIGTERM) }()
			out, err := s.command("network", "requests").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "own.example") {
				t.Errorf("what waits: %v\n%s", err, out)
			}
			out, err = s.command("network", "show", "default-admin-token").CombinedOutput()
			if err != nil || strings.Contains(string(out), "own.example") {
				t.Errorf("the network: %v\n%s", err, out)
			}
		})
	}
}
