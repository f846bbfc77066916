// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// wired is an engine whose sandboxes can have a network: the policy alone.
type wired struct {
	*engine.Engine
	rules permit.Rules
	now   sandbox.NetworkPolicy
	set   int
}

func (w *wired) Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	s, err := w.Engine.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	copied := *s
	copied.Network = w.now
	return &copied, nil
}

func (w *wired) Update(_ context.Context, _ access.Caller, _ string, p update.Patch) (*sandbox.Sandbox, error) {
	checked, err := w.rules.Check(p.Network)
	if err == nil {
		checked, err = w.rules.Resolve(checked, func() (permit.Image, error) { return permit.Image{}, nil })
	}
	if err == nil && p.Bound != nil {
		err = p.Bound.Within(w.InForce(w.now), checked)
	}
	if err != nil {
		return nil, err
	}
	w.now = checked
	w.set++
	return nil, nil
}

func (w *wired) InForce(p sandbox.NetworkPolicy) sandbox.NetworkPolicy { return w.rules.Bounded(p) }

func (w *wired) Presets(context.Context, access.Caller, string) ([]permit.Preset, bool, error) {
	all, err := w.rules.List(nil)
	return all, true, err
}

var (
	alice    = access.Caller{Project: "default", Actor: "alice", Via: "mcp", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	reader   = access.Caller{Project: "default", Actor: "reader", Scopes: []access.Scope{access.SandboxesRead}}
	stranger = access.Caller{Project: "other", Actor: "stranger", Scopes: alice.Scopes}
)

func open(t *testing.T, change func(*permit.Rules)) (*ask.Desk, *wired, func(t sandbox.EventType) []*sandbox.Event) {
	t.Helper()
	s := enginetest.Start(t, t.TempDir())
	set, err := preset.New(preset.Options{Lists: map[string][]string{"lists": {"a.lists.test", "b.lists.test"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := permit.Rules{Presets: set}
	change(&r)
	if _, _, err := s.Engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box"}); err != nil {
		t.Fatal(err)
	}
	w := &wired{Engine: s.Engine, rules: r, now: sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}}
	events := func(of sandbox.EventType) (out []*sandbox.Event) {
		if err := s.Store.View(t.Context(), func(tx store.Tx) (err error) {
			out, _, err = tx.Events().List(store.EventQuery{Project: "default", Types: []sandbox.EventType{of}})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	return ask.NewDesk(w, func() permit.Rules { return r }, nil), w, events
}

func TestAPersonGrantsOrDenies(t *testing.T) {
	d, w, events := open(t, func(*permit.Rules) {})
	r, state, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, []string{"Own.test"}, "to \x1b[2J install")
	if err != nil || state != ask.Pending || !slices.Equal(r.Allow(), []string{"lists", "own.test"}) || len(r.Names) != 2 {
		t.Fatalf("%+v, %q, %v", r, state, err)
	}
	if w.set != 0 {
		t.Fatal("asking changed the network")
	}
	if ev := events(sandbox.EventNetworkRequested); len(ev) != 1 || ev[0].ProcessID != r.ID || ev[0].Actor != "alice" || !strings.Contains(ev[0].Detail, "lists, own.test") {
		t.Errorf("events %+v", ev)
	}
	if again, state, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, []string{"own.test"}, ""); err != nil || state != ask.Pending || again.ID != r.ID || len(events(sandbox.EventNetworkRequested)) != 1 {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if all, err := d.NetworkRequests(t.Context(), reader, "box"); err != nil || len(all) != 1 || all[0].ID != r.ID {
		t.Errorf("listed %+v, %v", all, err)
	}
	if all, err := d.NetworkRequests(t.Context(), stranger, ""); err != nil || len(all) != 0 {
		t.Errorf("another project sees %+v, %v", all, err)
	}
	if _, err := d.GrantNetwork(t.Context(), stranger, r.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another project grants: %v", err)
	}
	if _, err := d.GrantNetwork(t.Context(), reader, r.ID); !fault.Is(err, fault.Denied) {
		t.Errorf("who may only read grants: %v", err)
	}
	if got, err := d.GrantNetwork(t.Context(), alice, r.ID); err != nil || got.ID != r.ID || !slices.Equal(w.now.AllowPresets, []string{"lists"}) || !slices.Contains(w.now.AllowDomains, "own.test") {
		t.Errorf("granted %+v, %v: %+v", got, err, w.now)
	}
	if n := len(events(sandbox.EventNetworkGranted)); n != 1 {
		t.Errorf("%d events of a grant", n)
	}
	if _, err := d.GrantNetwork(t.Context(), alice, r.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("granted twice: %v", err)
	}
	if _, state, err := d.RequestNetwork(t.Context(), alice, "box", nil, []string{"own.test"}, ""); err != nil || state != ask.Allowed {
		t.Errorf("of what it may: %q, %v", state, err)
	}
	r, _, err = d.RequestNetwork(t.Context(), alice, "box", nil, []string{"other.test"}, "")
	if err != nil {
		t.Fatal(err)
	}
	set := w.set
	if _, err := d.DenyNetwork(t.Context(), alice, r.ID); err != nil || w.set != set || len(events(sandbox.EventNetworkDenied)) != 1 {
		t.Errorf("denied: %v", err)
	}
	if all, err := d.NetworkRequests(t.Context(), alice, ""); err != nil || len(all) != 0 {
		t.Errorf("%+v wait, %v", all, err)
	}
}

func TestAGrantThatFailsWaitsOn(t *testing.T) {
	d, w, events := open(t, func(*permit.Rules) {})
	r, _, err := d.RequestNetwork(t.Context(), alice, "box", nil, []string{"own.test"}, "")
	if err != nil {
		t.Fatal(err)
	}
	w.rules.Most = sandbox.NetworkOff
	if _, err := d.GrantNetwork(t.Context(), alice, r.ID); !fault.Is(err, fault.Denied) {
		t.Errorf("wider than the operator allows: %v", err)
	}
	if all, err := d.NetworkRequests(t.Context(), alice, ""); err != nil || len(all) != 1 || len(events(sandbox.EventNetworkGranted)) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestWhatTheOperatorsRulesAllowIsGrantedAtOnce(t *testing.T) {
	d, w, events := open(t, func(r *permit.Rules) { r.Curated = []string{"curated.test"} })
	if _, state, err := d.RequestNetwork(t.Context(), alice, "box", nil, []string{"curated.test"}, ""); err != nil || state != ask.Granted || !slices.Equal(w.now.AllowDomains, []string{"curated.test"}) {
		t.Errorf("%q, %v: %+v", state, err, w.now)
	}
	if n := len(events(sandbox.EventNetworkRequested)); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestWhatMayNotBeAskedFor(t *testing.T) {
	d, _, _ := open(t, func(r *permit.Rules) { r.Ask = permit.AskNothing })
	if _, _, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, nil, ""); !fault.Is(err, fault.Denied) || !strings.Contains(fault.As(err).Message, "network.ask") {
		t.Errorf("%v", err)
	}
	d, _, _ = open(t, func(r *permit.Rules) {})
	if _, _, err := d.RequestNetwork(t.Context(), reader, "box", []string{"lists"}, nil, ""); !fault.Is(err, fault.Denied) {
		t.Errorf("who may only read: %v", err)
	}
	if _, _, err := d.RequestNetwork(t.Context(), stranger, "box", []string{"lists"}, nil, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("for another's: %v", err)
	}
}

// Requests of sandboxes that are gone make room for those of others.
func TestRequestsOfDeletedSandboxesMakeRoom(t *testing.T) {
	d, w, _ := open(t, func(*permit.Rules) {})
	boxes := []string{"box"}
	for n := range ask.MaxProject / ask.MaxPending {
		boxes = append(boxes, fmt.Sprintf("box%d", n))
		if _, _, err := w.Engine.Create(t.Context(), alice, engine.CreateRequest{Key: boxes[n+1]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, box := range boxes[1:] {
		for n := range ask.MaxPending {
			if _, _, err := d.RequestNetwork(t.Context(), alice, box, nil, []string{fmt.Sprintf("%d.test", n)}, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := d.RequestNetwork(t.Context(), alice, "box", nil, []string{"own.test"}, ""); !fault.Is(err, fault.Exhausted) {
		t.Fatalf("one too many: %v", err)
	}
	if err := w.Engine.Delete(t.Context(), alice, "box0"); err != nil {
		t.Fatal(err)
	}
	if _, state, err := d.RequestNetwork(t.Context(), alice, "box", nil, []string{"own.test"}, ""); err != nil || state != ask.Pending {
		t.Errorf("with one deleted: %q, %v", state, err)
	}
}

// A desk of the next server knows what waited; what was answered, or is of a sandbox that is gone, does not come back.
func TestRequestsOutliveTheServer(t *testing.T) {
	d, w, events := open(t, func(*permit.Rules) {})
	var all []ask.Request
	for _, name := range []string{"granted.test", "denied.test", "waits.test"} {
		r, _, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, []string{name}, "why \"it\"")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if _, err := d.GrantNetwork(t.Context(), alice, all[0].ID); err != nil {
		t.Fatal(err)
	}
	d = ask.NewDesk(w, func() permit.Rules { return w.rules }, nil)
	if _, err := d.DenyNetwork(t.Context(), alice, all[1].ID); err != nil {
		t.Fatalf("one of before: %v", err)
	}
	d = ask.NewDesk(w, func() permit.Rules { return w.rules }, nil)
	again, state, err := d.RequestNetwork(t.Context(), alice, "box", []string{"lists"}, []string{"waits.test"}, "")
	if err != nil || state != ask.Pending || again.ID != all[2].ID || len(events(sandbox.EventNetworkRequested)) != 3 {
		t.Errorf("asked again by the next server: %+v, %q, %v", again, state, err)
	}
	got, err := d.NetworkRequests(t.Context(), alice, "")
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v wait, %v", got, err)
	}
	all[2].At, all[2].Until = got[0].At, got[0].Until // clocks are kept to the microsecond
	if !reflect.DeepEqual(got[0], all[2]) {
		t.Errorf("it is %+v, and was %+v", got[0], all[2])
	}
	if err := w.Engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if got, err := ask.NewDesk(w, func() permit.Rules { return w.rules }, nil).NetworkRequests(t.Context(), alice, ""); err != nil || len(got) != 0 {
		t.Errorf("of a sandbox that is gone: %+v, %v", got, err)
	}
}
