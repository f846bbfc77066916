// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sdks

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"net/http"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

// signature prints the parameters of the SDK's create.
const signature = "import inspect, orkestr; print(*inspect.signature(orkestr.Sandbox.create).parameters)"

// notOfTheTool are parameters of the SDK's create that the tool has not: what no tool is about, and how the SDK calls.
var notOfTheTool = []string{"api_key", "client", "max_retries", "preview_auth", "retry_max_seconds", "snapshot"}

// caller speaks JSON to a server as its administrator.
type caller struct {
	t testing.TB
	s *servertest.Server
}

// ask makes a request, and reads what comes.
func (c caller) ask(method, path string, in any) (status int, out map[string]any) {
	c.t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			c.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.s.Address+path, &body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.s.Token)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil && err != io.EOF {
		c.t.Fatalf("%s %s: %d %v", method, path, resp.StatusCode, err)
	}
	return resp.StatusCode, out
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// tools is a session with the profile of Orkestr's tools.
func tools(t *testing.T, s *servertest.Server) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.Address + "/mcp/orkestr", HTTPClient: &http.Client{Transport: bearer(s.Token)}, MaxRetries: -1, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// called calls a tool. It returns the object of its answer; nil: it refused.
func called(t *testing.T, session *sdk.ClientSession, tool string, args map[string]any) (out map[string]any, text string) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	text = res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return nil, text
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v in %s", tool, err, text)
	}
	return out, text
}

// field is an argument as the tool's schema has it.
type field struct {
	Type             string
	Enum             []string
	Minimum, Maximum *float64
}

// values are some that the field takes, and some beyond.
func (f field) values(t *testing.T, name string) (all []any) {
	t.Helper()
	switch {
	case f.Enum != nil:
		all = append(all, "none-such")
		for _, v := range f.Enum {
			all = append(all, v)
		}
	case f.Maximum != nil:
		all = append(all, *f.Minimum-1, *f.Minimum, *f.Maximum, *f.Maximum+1)
	case f.Type == "boolean":
		all = append(all, true, false)
	case f.Type == "object":
		long := make(map[string]string)
		for i := range 1000 {
			long[strings.Repeat("k", 1+i)] = "v"
		}
		all = append(all, map[string]string{"A": "b"}, map[string]string{}, map[string]string{"": "b"}, long)
	default:
		texts := map[string][]any{
			"template": {"python", "python-3.12", "tmpl_none"}, "allow_domains": {"example.com", "a b"}, "volume": {"data", "a b"}, "region": {"local", "mars"},
		}[name]
		if texts == nil {
			t.Fatalf("the argument %s has no values to try", name)
		}
		all = texts
	}
	return all
}

// record is what /v1 says of a sandbox, but for what is of that one alone.
func (c caller) record(id string) map[string]any {
	c.t.Helper()
	status, v := c.ask("GET", "/v1/sandboxes/"+id, nil)
	if status != http.StatusOK {
		c.t.Fatalf("/v1 says %d of %s: %v", status, id, v)
	}
	out := make(map[string]any)
	for _, name := range []string{"image", "image_digest", "cpu_cores", "memory_mb", "disk_mb", "network_policy", "metadata", "idle_timeout_seconds", "on_expiry", "auto_resume", "volumes", "env", "template"} {
		out[name] = v[name]
	}
	var at [2]time.Time
	for i, name := range []string{"created_at", "expires_at"} {
		text, _ := v[name].(string)
		at[i], _ = time.Parse(time.RFC3339, text) // a time that is not there is the zero one
	}
	out["lives"] = math.Round(at[1].Sub(at[0]).Minutes())
	return out
}

// The tools and the SDK's routes have the same fields, and each of their values is taken or refused alike and makes the same.
func TestTheToolsTakeWhatTheSDKTakes(t *testing.T) {
	python := packagestest.NeedPip(t, "sdks-pip", ".")
	s := servertest.Start(t, program)
	c, session := caller{t, s}, tools(t, s)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Properties map[string]field }
	for _, tool := range list.Tools {
		if tool.Name == "create_sandbox" {
			b, err := json.Marshal(tool.InputSchema)
			if err == nil {
				err = json.Unmarshal(b, &schema)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.Command(python, "-c", signature).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return slices.Contains(notOfTheTool, name) })
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, want) {
		t.Errorf("the tool has the arguments %v, the SDK's create %v", got, want)
	}

	taken := 0
	for name, f := range schema.Properties {
		for _, value := range f.values(t, name) {
			say := map[string]any{"template": "python", "timeout_seconds": 600, name: value}
			tool := maps.Clone(say)
			if name == "allow_domains" {
				say["network"], tool["network"], say[name] = "restricted", "restricted", []any{value}
			}
			status, byRoute := c.ask("POST", "/orkestr/v1/sandboxes", say)
			byTool, text := called(t, session, "create_sandbox", tool)
			if (status == http.StatusCreated) != (byTool != nil) {
				t.Errorf("%s %v: the route answers %d %v, the tool %s", name, value, status, byRoute, text)
			}
			if status == http.StatusCreated && byTool != nil && name != "volume" { // which one sandbox has
				taken++
				if route, tool := c.record(byRoute["id"].(string)), c.record(byTool["id"].(string)); !reflect.DeepEqual(route, tool) {
					t.Errorf("%s %v: by the route %v, by the tool %v", name, value, route, tool)
				}
				for _, same := range []string{"status", "template", "network", "cpu", "memory_mb", "region", "on_timeout", "auto_resume", "metadata", "volume"} {
					if !reflect.DeepEqual(byRoute[same], byTool[same]) {
						t.Errorf("%s %v: %s is %v by the route, and %v by the tool", name, value, same, byRoute[same], byTool[same])
					}
				}
			}
			for _, box := range []map[string]any{byRoute, byTool} {
				if id, ok := box["id"].(string); ok {
					c.ask("DELETE", "/v1/sandboxes/"+id, nil)
				}
			}
		}
	}
	if taken < 15 {
		t.Errorf("but %d values were taken by both", taken)
	}
}

// What both tell of the server is the same.
func TestTheToolsTellTheLimitsThatTheSDKIsTold(t *testing.T) {
	s := servertest.Start(t, program)
	c, session := caller{t, s}, tools(t, s)
	byTool, _ := called(t, session, "get_sandbox_limits", nil)
	_, byRoute := c.ask("GET", "/orkestr/v1/sandboxes/limits", nil)
	sizes, regions := make(map[string]any), []any{}
	for _, one := range byRoute["sizes"].([]any) {
		m := one.(map[string]any)
		sizes[m["size"].(string)] = map[string]any{"cpu": m["cpu"], "memory_mb": m["memory_mb"]}
	}
	for _, one := range byRoute["regions"].([]any) {
		regions = append(regions, one.(map[string]any)["id"])
	}
	if !reflect.DeepEqual(byTool["sizes"], any(sizes)) || len(sizes) == 0 {
		t.Errorf("sizes: %v by the tool, %v by the route", byTool["sizes"], sizes)
	}
	if !reflect.DeepEqual(byTool["regions"], any(regions)) || len(regions) == 0 {
		t.Errorf("regions: %v by the tool, %v by the route", byTool["regions"], regions)
	}
	// A sandbox that is stopped is told alike, and started alike.
	status, box := c.ask("POST", "/orkestr/v1/sandboxes", map[string]any{"template": "python"})
	if status != http.StatusCreated {
		t.Fatal(status, box)
	}
	c.ask("POST", "/v1/sandboxes/"+box["id"].(string)+"/stop", nil)
	if l, _ := called(t, session, "get_sandbox_limits", nil); !reflect.DeepEqual(l["sandboxes"], map[string]any{"paused": 1.0}) {
		t.Errorf("of one that is stopped the tool tells %v", l["sandboxes"])
	}
	if up, text := called(t, session, "resume_sandbox", map[string]any{"sandbox_id": box["id"]}); up["status"] != "running" {
		t.Errorf("resumed: %s", text)
	}
}
