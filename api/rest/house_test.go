// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/access/session"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/events"
	"sandpit.dev/engine/fleet"
	"sandpit.dev/engine/meter"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/overview"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	sandboxtokens "sandpit.dev/engine/tokens"
	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
	"sandpit.dev/linux/machine"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
	"sandpit.dev/projects"
	"sandpit.dev/runtime"
	"sandpit.dev/settings"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
	"sandpit.dev/webhooks"
)

// house is the whole way from HTTP to real commands: the coat over the engine,
// a store in a file, and a host of the memory runtime.
type house struct {
	t      testing.TB
	url    string
	api    *rest.API
	token  string // the one that calls are made with; admin at first
	tokens *bearer.Authority
	store  store.Store
	quotas *quota.Keeper
	made   rest.Options // what api was made of
}

// runLog runs a log of changes until the test ends.
func runLog(t testing.TB, l *events.Log) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
}

const adminToken = "an-admin-token-for-tests"

func open(t testing.TB, change ...func(*rest.Options)) *house {
	t.Helper()
	return openGuarded(t, guard.Options{}, change...)
}

func openGuarded(t testing.TB, guarded guard.Options, change ...func(*rest.Options)) *house {
	t.Helper()
	return openEngine(t, guarded, func(*engine.Options) {}, change...)
}

// openEngine is openGuarded with an engine of other options.
func openEngine(t testing.TB, guarded guard.Options, engineOf func(*engine.Options), change ...func(*rest.Options)) *house {
	t.Helper()
	var changes *events.Log
	counted := metrics.New(nil)
	s := enginetest.Start(t, t.TempDir(), func(e *engine.Options) {
		e.Metrics = counted
		changes = events.New(e.Store, events.Options{Object: rest.EventObject})
		e.Store = changes.Store()
		engineOf(e)
	})
	runLog(t, changes)
	tokens, err := bearer.New(s.Keys.Store(), bearer.Options{Admins: []bearer.Secret{bearer.NewSecret(adminToken)}})
	must(t, err)
	must(t, tokens.ServeSandboxes(bytes.Repeat([]byte{7}, bearer.SandboxKeySize), s.Engine))
	s.Engine.OnDeleted(tokens.EndSandbox)
	people := session.New(s.Keys.Store(), tokens, session.Options{})
	guarded.Tokens, guarded.Sessions, guarded.Record = tokens, people, s.Audit.Answered
	g, err := guard.New(guarded)
	must(t, err)
	presets, err := preset.New(preset.Options{})
	must(t, err)
	o := rest.Options{Services: service.Of(s.Creator, s.Files, ports.New(s.Engine), s.Code, s.Runs, ask.NewDesk(s.Engine, func() permit.Rules { return permit.Rules{Presets: presets} }, nil), skills.New(s.Engine, skills.Options{})), Tokens: tokens, Keys: s.Keys, Guard: g, Sessions: people, Previews: links{}, Version: enginetest.Version}
	o.Services.Templates = s.Creator.Templates
	o.Services.Stats = meter.New(s.Store, map[string]runtime.Driver{"memory": s.Host.Driver()}, meter.Options{Host: func() (meter.HostUse, error) {
		u, err := machine.Read(t.TempDir())
		return meter.HostUse(u), err
	}})
	o.Services.Overview = overview.New(s.Store, o.Services.Stats.(*meter.Service), counted.Recent(), overview.Options{Started: time.Now()})
	o.Services.Audit = s.Audit
	o.Services.Tokens = sandboxtokens.New(s.Engine, tokens)
	o.Services.Events = changes
	ring, err := seal.Parse(seal.Generate())
	must(t, err)
	o.Services.Webhooks = webhooks.New(s.Keys.Store(), changes, webhooks.Options{Ring: ring, Body: shape.Event})
	o.Services.Usage = usage.New(s.Store, usage.Options{})
	o.Services.Fleet = fleet.New(s.Creator)
	o.Services.Projects = projects.New(s.Keys.Store(), s.Quotas, nil)
	o.Services.Settings, err = settings.Open(t.Context(), s.Store, settings.Options{Configuration: []settings.Configured{
		{Key: "listen", Value: "127.0.0.1:8080", Source: settings.Flag},
		{Key: "log.level", Value: "info", Source: settings.Default, Setting: "log_level"},
		{Key: "templates", Value: map[string]any{"web": map[string]any{"pids": int64(5), "env": map[string]any{"KEY": "[redacted]"}}}, Secret: true, Source: settings.File},
	}, Prepare: func(v settings.Values) (func(), error) {
		if v.DefaultImage == "none" {
			return nil, fault.InvalidField("default_image", "there is no image %q", v.DefaultImage)
		}
		set := *s.Engine.Settings()
		set.IdleTimeout, set.Variables, set.PublicPreviews = v.IdleTimeout, v.AllowedVariables, v.MaxPreviews == "public"
		return func() { must(t, s.Engine.Set(set)) }, nil
	}})
	must(t, err)
	for _, f := range change {
		f(&o)
	}
	h := &house{t: t, token: adminToken, tokens: tokens, store: s.Store, quotas: s.Quotas, made: o}
	return h.serve(o)
}

// serve returns the house with a coat of its own.
func (h *house) serve(o rest.Options) *house {
	h.t.Helper()
	api, err := rest.New(o)
	must(h.t, err)
	srv := newServer(documented(h.t, api))
	h.t.Cleanup(func() { api.Close(); srv.Close() })
	other := *h
	other.url, other.api = srv.URL, api
	return &other
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// as returns the house with another token: of a project, with scopes.
func (h *house) as(project string, scopes ...access.Scope) *house {
	h.t.Helper()
	admin := access.Caller{Project: access.DefaultProject, Actor: "test", Scopes: []access.Scope{access.ServerAdmin}}
	_, secret, err := h.tokens.Create(h.t.Context(), admin, bearer.NewToken{Name: project + "-" + time.Now().Format("150405.000000000"), Project: project, Scopes: scopes})
	must(h.t, err)
	other := *h
	other.token = secret.Reveal()
	return &other
}

// answer is what came back, read to its end.
type answer struct {
	*http.Response
	body []byte
}

// do sends a request. A body that is no string is sent as JSON. Headers come in
// pairs.
func (h *house) do(method, path string, body any, headers ...string) answer {
	h.t.Helper()
	var r io.Reader
	kind := ""
	switch b := body.(type) {
	case nil:
	case string:
		r, kind = strings.NewReader(b), "application/json"
	case []byte:
		r, kind = bytes.NewReader(b), "application/octet-stream"
	default:
		data, err := json.Marshal(b)
		must(h.t, err)
		r, kind = bytes.NewReader(data), "application/json"
	}
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, r)
	must(h.t, err)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if h.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := plain.Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return answer{resp, data}
}

var plain = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// want sends a request, checks the status and reads the JSON that came back.
func want[T any](h *house, status int, method, path string, body any, headers ...string) (out T) {
	h.t.Helper()
	a := h.do(method, path, body, headers...)
	if a.StatusCode != status {
		h.t.Fatalf("%s %s: got %d %s, want %d", method, path, a.StatusCode, a.body, status)
	}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &out); err != nil {
			h.t.Fatalf("%s %s: the answer %q cannot be read: %v", method, path, a.body, err)
		}
	}
	return out
}

type object = map[string]any

// create makes a sandbox that has to work out.
func (h *house) create() v1.Sandbox {
	h.t.Helper()
	return want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{})
}
