// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package traced_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/traced"
	"sandpit.dev/fault"
	"sandpit.dev/store"
	"sandpit.dev/trace"
)

// kept collects spans, by their names in the order in which they ended.
type kept struct {
	mu  sync.Mutex
	all []*trace.Data
}

func (k *kept) add(d *trace.Data) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, d)
}

// named returns the only span of a name, with its attributes.
func (k *kept) named(t *testing.T, name string) (*trace.Data, map[string]any) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	var found *trace.Data
	for _, d := range k.all {
		if d.Name == name {
			if found != nil {
				t.Errorf("there are two spans %s", name)
			}
			found = d
		}
	}
	if found == nil {
		t.Fatalf("there is no span %s", name)
	}
	all := make(map[string]any)
	for _, a := range found.Attributes {
		all[a.Key] = a.Value
	}
	return found, all
}

func (k *kept) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.all {
		if d.Name == name {
			return true
		}
	}
	return false
}

func (k *kept) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var b strings.Builder
	for _, d := range k.all {
		fmt.Fprintf(&b, "%+v\n", *d)
	}
	return b.String()
}

var alice = access.Caller{Project: access.DefaultProject, Actor: "alice", Via: "rest", Scopes: []access.Scope{access.Admin, access.SandboxesRead, access.SandboxesWrite}}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, o traced.Options) (*enginetest.Server, *trace.Tracer, *kept) {
	t.Helper()
	k := new(kept)
	tracer := trace.New(trace.Options{Sample: 1, Export: k.add})
	s := enginetest.Start(t, t.TempDir(), func(e *engine.Options) { e.Store = traced.New(e.Store, tracer, o).Store() })
	return s, tracer, k
}

func TestVerbsAndCommandsAreSpansOfTheirRequest(t *testing.T) {
	s, tracer, k := start(t, traced.Options{})
	ctx, request := tracer.Begin(t.Context(), "request", "", "")
	box, _, err := s.Engine.Create(ctx, alice, engine.CreateRequest{Key: "work", Env: map[string]string{"E": "secret-in-env"}})
	must(t, err)
	res, err := s.Engine.Exec(ctx, alice, "work", engine.ExecRequest{Shell: "echo secret-in-text; exit 3", Env: map[string]string{"F": "secret-in-command-env"}, Stdin: []byte("secret-in-stdin")}, nil)
	must(t, err)
	_, err = s.Engine.Stop(ctx, alice, "work")
	must(t, err)
	_, err = s.Engine.Start(ctx, alice, "work")
	must(t, err)
	must(t, s.Engine.Delete(ctx, alice, "work"))
	request.End()
	s.Await(t, "the command's span", func() bool { return k.has("command") })
	r, _ := k.named(t, "request")
	for _, name := range []string{"sandbox create", "sandbox stop", "sandbox start", "sandbox delete", "command"} {
		d, all := k.named(t, name)
		if d.Trace != r.Trace || d.Parent != r.ID || d.Failed != (name == "command") || all["sandpit.sandbox.id"] != string(box.ID) || d.End.Before(d.Begin) || d.Begin.Before(r.Begin) {
			t.Errorf("%s: got %+v", name, d)
		}
	}
	if _, all := k.named(t, "command"); all["process.exit.code"] != int64(3) || all["sandpit.process.id"] != res.ProcessID || all["error.type"] != "exit" || all["sandpit.stdout_bytes"] != int64(len("secret-in-text\n")) {
		t.Errorf("got %v", all)
	}
	if text := k.text(); strings.Contains(text, "secret") {
		t.Errorf("got %s", text)
	}
	var names []string
	for _, e := range r.Events {
		names = append(names, e.Name)
	}
	if all := strings.Join(names, " "); !strings.Contains(all, "created") || !strings.Contains(all, "stopped") || !strings.Contains(all, "deleted") {
		t.Errorf("the request's events are %s", all)
	}
}

func TestTheTextOfACommandIsMasked(t *testing.T) {
	s, tracer, k := start(t, traced.Options{Commands: true})
	ctx, _ := tracer.Begin(t.Context(), "request", "", "")
	_, _, err := s.Engine.Create(ctx, alice, engine.CreateRequest{Key: "work"})
	must(t, err)
	_, err = secrets.NewService(s.Engine).SetSecret(ctx, alice, "work", secrets.Request{Name: "KEY", Value: "value-of-a-secret"})
	must(t, err)
	_, err = s.Engine.Exec(ctx, alice, "work", engine.ExecRequest{Shell: "echo value-of-a-secret and more"}, nil)
	must(t, err)
	s.Await(t, "the command's span", func() bool { return k.has("command") })
	_, all := k.named(t, "command")
	if text, _ := all["process.command_line"].(string); !strings.Contains(text, "and more") || strings.Contains(k.text(), "value-of-a-secret") {
		t.Errorf("got %s", k.text())
	}
}

func TestWhatAClockDoesIsATraceOfItsOwn(t *testing.T) {
	s, tracer, k := start(t, traced.Options{})
	ctx, request := tracer.Begin(t.Context(), "request", "", "")
	idle := 100 * time.Millisecond
	_, _, err := s.Engine.Create(ctx, alice, engine.CreateRequest{Key: "work", IdleTimeout: &idle})
	if fault.Is(err, fault.Invalid) { // too short to be asked for
		idle = time.Second
		_, _, err = s.Engine.Create(ctx, alice, engine.CreateRequest{Key: "work", IdleTimeout: &idle})
	}
	must(t, err)
	request.End()
	s.Await(t, "the stop of an idle sandbox", func() bool { return k.has("sandbox stop") })
	r, _ := k.named(t, "request")
	if d, _ := k.named(t, "sandbox stop"); d.Trace == r.Trace || d.Parent != (trace.SpanID{}) {
		t.Errorf("got %+v", d)
	}
}

func TestWhatIsNotKeptOrNotCommittedHasNoSpan(t *testing.T) {
	s, tracer, k := start(t, traced.Options{})
	ctx, request := tracer.Begin(t.Context(), "request", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "")
	if request != nil {
		t.Fatal("a trace is kept that its caller does not keep")
	}
	box, _, err := s.Engine.Create(ctx, alice, engine.CreateRequest{Key: "work"})
	must(t, err)
	_, err = s.Engine.Exec(ctx, alice, "work", engine.ExecRequest{Shell: "true"}, nil)
	must(t, err)
	_, err = s.Engine.Stop(ctx, alice, "work")
	must(t, err)
	never := errors.New("never")
	st := traced.New(s.Store, tracer, traced.Options{}).Store()
	err = st.Update(context.Background(), func(tx store.Tx) error {
		got, err := tx.Sandboxes().Get(box.ID)
		if err != nil {
			return err
		}
		got.State = "deleting"
		if err := tx.Sandboxes().Update(got); err != nil {
			return err
		}
		return never
	})
	if !errors.Is(err, never) {
		t.Fatal(err)
	}
	must(t, s.Engine.Delete(ctx, alice, "work"))
	if text := k.text(); text != "" {
		t.Errorf("got %s", text)
	}
}
