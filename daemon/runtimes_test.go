// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/runtime/runtimetest"
	"sandpit.dev/sandbox"
)

// own is a kind of runtime that the server does not come with: package memory's.
type own struct {
	Setting   string
	host      *memory.Host
	inspected int
}

func newOwn(t *testing.T) *own {
	host, err := memory.Open(t.TempDir(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Errorf("close the host: %v", err)
		}
	})
	return &own{host: host}
}

func (o *own) Name() string              { return "own" }
func (o *own) Variables() map[string]any { return map[string]any{"SANDPIT_OWN_SETTING": &o.Setting} }

func (o *own) Check() error {
	if o.Setting == "bad" {
		return errors.New("own.setting is bad")
	}
	return nil
}

func (o *own) Open(context.Context, runtime.OpenOptions) (runtime.Driver, error) {
	return o.host.Driver(), nil
}

func (o *own) Inspect(context.Context, runtime.Place, func(sandbox.ID) string, bool) ([]runtime.Finding, error) {
	o.inspected++
	return []runtime.Finding{{Name: "thing", What: "it is broken", Done: "it was mended"}}, nil
}

// A runtime that one line adds to the list is configured, served and looked after as those
// that the server comes with, and its driver passes the suite as the list opens it.
func TestARuntimeIsALineInTheList(t *testing.T) {
	i := newInstallation(t)
	kind := newOwn(t)
	i.cfg.Others = []runtime.Kind{kind} // the line
	i.cfg.Images.Dir, i.cfg.AdminToken = imagetest.Dir(t), "an-admin-token-of-a-test"

	t.Run("Configuration", func(t *testing.T) {
		cfg := i.cfg
		cfg.Others = []runtime.Kind{&own{}}
		env := map[string]string{"SANDPIT_OWN_SETTING": "bad", "SANDPIT_LAYERS": "plain"}
		i.must(cfg.ReadEnv(func(name string) string { return env[name] }))
		if err := cfg.Check(); err == nil || err.Error() != "own.setting is bad" {
			t.Errorf("a section that is bad: got %v", err)
		}
		if cfg.Native.Layers != "plain" {
			t.Errorf("native.layers by the environment is %q, want plain", cfg.Native.Layers)
		}
	})
	t.Run("Served", func(t *testing.T) {
		url, stop, err := i.start(Adopt{})
		i.must(err)
		defer stop()
		c := client.New(url, i.cfg.AdminToken, client.Options{})
		info, err := c.Info(t.Context())
		i.must(err)
		if len(info.Runtimes) != 2 || info.Runtime != "native" {
			t.Errorf("the server says that it has %d runtimes and uses %q; want 2, and native", len(info.Runtimes), info.Runtime)
		}
		for _, name := range []string{"own", "native"} {
			s, _, err := c.Create(t.Context(), v1.CreateSandbox{Runtime: new(name)})
			i.must(err)
			res, err := c.Exec(t.Context(), s.ID, v1.Exec{Argv: []string{"echo", "hello"}})
			i.must(err)
			if s.Runtime != name || res.Stdout != "hello\n" {
				t.Errorf("a sandbox of %s is one of %s, and its command printed %q", name, s.Runtime, res.Stdout)
			}
			i.must(c.Delete(t.Context(), s.ID))
		}
	})
	t.Run("Repaired", func(t *testing.T) {
		before := kind.inspected
		if c := checkOf(t, Repair(t.Context(), i.cfg, true), "own/thing"); c.Status != Passed || c.Done != "it was mended" {
			t.Errorf("got %+v, want that it was mended", c)
		}
		if kind.inspected != before+1 {
			t.Errorf("it was inspected %d times, want once", kind.inspected-before)
		}
	})
	t.Run("Doctor", func(t *testing.T) {
		if c := checkOf(t, Doctor(t.Context(), i.cfg, true), "own/"+string(runtime.Isolation)); c.Status != Failed {
			t.Errorf("isolation of a runtime that has none is %+v, want that it failed", c)
		}
	})
	t.Run("Suite", func(t *testing.T) {
		runtimetest.Run(t, func(t *testing.T) runtimetest.Harness {
			cfg := DefaultConfig()
			cfg.Others = []runtime.Kind{newOwn(t)}
			return runtimetest.Harness{Open: func(t *testing.T) runtime.Driver {
				list := cfg.list()
				d, err := list[len(list)-1].Open(t.Context(), runtime.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return d
			}}
		}, "Limits", "Pause", "Resize", "Snapshots", "Volumes", "Network", "Changes", "Watches", "Users", "Isolation", "Neighbours")
	})
}

// checkOf returns the check of that name, of which there has to be one.
func checkOf(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q among %+v", name, checks)
	return Check{}
}
