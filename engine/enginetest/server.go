// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package enginetest starts an engine, with runs and code above it, for the tests of what uses one. Its
// neighbours are real: a store in a file, and a host of the memory runtime with real agents and real
// commands. It knows no coat, and the product never links it.
package enginetest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/blob/dir"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/files"
	"sandpit.dev/engine/languages"
	"sandpit.dev/engine/templates"
	"sandpit.dev/runs"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/store"
	"sandpit.dev/store/keyed"
	"sandpit.dev/store/quota"
	"sandpit.dev/store/sqlstore"
)

// Version is that of the tests' engines.
const Version = "v0.0.0-test"

// Server is an engine that runs, with what it works on. It ends with the test.
type Server struct {
	Host   *memory.Host
	Store  *sqlstore.Store
	Audit  *recorder.Recorder // over Store, as the engine has it
	Quotas *quota.Keeper      // over that
	Keys   *keyed.Keys
	Engine *engine.Engine
	Runs   *runs.Runner
	Code   *code.Service
	// Languages runs language servers.
	Languages *languages.Service
	Files     *files.Service
	// Creator is the engine with templates.
	Creator *templates.Creator

	t        testing.TB
	parts    parts
	change   []func(*engine.Options)
	archives string
	stop     func()
}

// Start opens a host and a store in dir, with what earlier ones left there, and starts an engine
// over them, which is ready when Start returns. What is unlike [Options] is up to change, of this
// engine and of those after a Restart.
func Start(t testing.TB, dir string, change ...func(*engine.Options)) *Server {
	t.Helper()
	return start(t, dir, parts{}, change...)
}

// StartTemplates is Start with options of templates.
func StartTemplates(t testing.TB, dir string, o templates.Options, change ...func(*engine.Options)) *Server {
	t.Helper()
	return start(t, dir, parts{made: o}, change...)
}

// StartRuns is Start with options of runs.
func StartRuns(t testing.TB, dir string, r runs.Options, change ...func(*engine.Options)) *Server {
	t.Helper()
	return start(t, dir, parts{runs: r}, change...)
}

// StartLanguages is Start with options of language servers.
func StartLanguages(t testing.TB, dir string, o languages.Options, change ...func(*engine.Options)) *Server {
	t.Helper()
	return start(t, dir, parts{languages: o}, change...)
}

// parts are the options of what stands above an engine.
type parts struct {
	runs      runs.Options
	made      templates.Options
	languages languages.Options
}

func start(t testing.TB, dir string, p parts, change ...func(*engine.Options)) *Server {
	t.Helper()
	host, err := memory.Open(filepath.Join(dir, "host"), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error("closing the host:", err)
		}
	})
	st, err := sqlstore.Open(context.Background(), sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error("closing the store:", err)
		}
	})
	log, err := recorder.Open(context.Background(), st, recorder.Options{Writer: "test", Key: audit.NewKey()})
	if err != nil {
		t.Fatal(err)
	}
	quotas, err := quota.Open(context.Background(), log.Store(), quota.Options{}, access.DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	if p.made.Resolve == nil {
		p.made.Resolve = Images{}.Resolve
	}
	s := &Server{Host: host, Store: st, Audit: log, Quotas: quotas, t: t, parts: p, change: change, archives: filepath.Join(dir, "archive")}
	s.serve()
	return s
}

// Options returns what an engine over a store and a host is made of.
func Options(st store.Store, d runtime.Driver) engine.Options {
	return engine.Options{
		Store: st, Runtimes: map[string]runtime.Driver{"memory": d}, Images: Images{}, Version: Version,
		Defaults: engine.Defaults{StopGrace: 100 * time.Millisecond},
	}
}

// Restart ends the engine and starts another over the same host and store, as where the server's
// program is started again.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.serve()
}

// Stop ends the engine and waits for its end. Twice is fine.
func (s *Server) Stop() { s.stop() }

func (s *Server) serve() {
	s.t.Helper()
	s.Keys = keyed.New(s.Quotas.Store(), keyed.Options{})
	o := Options(s.Keys.Store(), s.Host.Driver())
	o.Archives = dir.New(s.archives)
	up, use := templates.Late()
	o.Up = up
	for _, f := range s.change {
		f(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Engine, s.Runs, s.Code, s.Files = e, runs.New(e, o.Store, s.parts.runs), code.New(e, code.Options{}), files.New(e, 0)
	s.Languages = languages.New(e, s.parts.languages)
	t := templates.New(e, s.parts.made)
	use(t)
	s.Creator = &templates.Creator{Engine: e, Templates: t}
	s.stop = s.run()
	s.t.Cleanup(s.stop)
	if err := e.WaitReady(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// run runs the engine and its keys until stop is called.
func (s *Server) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- s.Engine.Run(ctx, s.Runs.Resume, s.Creator.Templates.Resume) }()
	go func() { ended <- s.Keys.Run(ctx) }()
	go func() { ended <- s.Audit.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		for range cap(ended) {
			if err := <-ended; err != nil {
				s.t.Error("Run:", err)
			}
		}
	})
}

// awaitBound ends a wait for what never comes, long before the bound of all tests, which would not
// say what was waited for.
const awaitBound = 2 * time.Minute

// Await waits for commits until ok reports true.
func (s *Server) Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awaitBound)
	defer cancel()
	for {
		changed := s.Store.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, ctx.Err())
		}
	}
}
