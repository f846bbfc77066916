// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/lsp"
	"sandpit.dev/sandbox"
)

// Bounds of language servers.
const (
	MaxServers  = 8 // of one sandbox
	startBound  = 90 * time.Second
	answerBound = 60 * time.Second
	idleBound   = 15 * time.Minute // without a question, before one is ended
	stopBound   = 2 * time.Second  // to end by itself, and then to be gone
)

// Engine is what this package needs of the engine; *engine.Engine is one.
type Engine interface {
	Extend(engine.Extension)
	Use(ctx context.Context, c access.Caller, scope access.Scope, ref, what string) (*engine.Use, error)
	Go(func(context.Context))
}

// Options of a Service. The zero value works.
type Options struct {
	Idle   time.Duration // without a question, before a server is ended; 0: 15 minutes
	Logger *slog.Logger  // nil: discard
}

// Service is the verbs of language servers. All its methods are safe for concurrent use.
type Service struct {
	engine Engine
	idle   time.Duration
	log    *slog.Logger

	mu      sync.Mutex
	servers map[key]*server
}

// key is what there is one server for.
type key struct {
	sandbox  sandbox.ID
	language string
	project  string // absolute
}

// At says which server is meant. All errors name its fields.
type At struct {
	Language string // python, typescript or javascript
	Project  string // a directory, relative to the workspace
}

// useLanguage is the use of a sandbox that a question is, in a word for people.
const useLanguage = "a language server"

// ReasonNotStarted is the reason of an error about a server that was not started, or has ended.
const ReasonNotStarted = "language_server_not_started"

// New returns the service of an engine, which it extends. It is called before the engine's Run.
func New(e Engine, o Options) *Service {
	s := &Service{engine: e, idle: o.Idle, log: o.Logger, servers: make(map[key]*server)}
	if s.idle <= 0 {
		s.idle = idleBound
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	e.Extend(extension{s})
	return s
}

// use begins a use of a sandbox by a caller who asks something of a server.
func (s *Service) use(ctx context.Context, c access.Caller, ref string, at At, k *check.Fields) (*engine.Use, key, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return nil, key{}, err
	}
	if _, ok := of(at.Language); !ok {
		k.Add(unknown(at.Language))
	}
	k.Path("project", at.Project)
	if err := k.Err(); err != nil {
		return nil, key{}, err
	}
	u, err := s.engine.Use(ctx, c, access.SandboxesWrite, ref, useLanguage)
	if err != nil {
		return nil, key{}, err
	}
	return u, key{u.Sandbox(), at.Language, u.Account().Absolute(at.Project)}, nil
}

// Start starts a server, unless it runs, and returns when it has been told of the project. A sandbox whose image
// has no such program is fault.Unsupported.
func (s *Service) Start(ctx context.Context, c access.Caller, ref string, at At) error {
	u, k, err := s.use(ctx, c, ref, at, new(check.Fields))
	if err != nil {
		return err
	}
	defer u.End()
	for {
		x, first, err := s.place(k)
		if err != nil {
			return err
		}
		if first {
			began := false
			err := u.Work(ctx, useLanguage, func(ctx context.Context, u *engine.Use) error {
				began = true
				x.started(s.begin(ctx, u, x))
				return nil
			})
			if err != nil && !began {
				x.started(err)
			}
		}
		select {
		case <-x.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if first || x.failed != nil {
			return u.Fail(ctx, x.failed)
		}
		err = x.answers(ctx)
		if !fault.Is(err, fault.Unavailable) {
			return err
		}
		s.forget(x) // it has just ended
	}
}

// place returns the server of a key, and whether it is the caller's to begin.
func (s *Service) place(k key) (x *server, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.servers[k]; x != nil && !x.over() {
		return x, false, nil
	}
	n := 0
	for other := range s.servers {
		if other.sandbox == k.sandbox && other != k {
			n++
		}
	}
	if n >= MaxServers {
		return nil, false, fault.New(fault.Exhausted, "the sandbox has %d language servers, its bound", n).WithRemedy("stop one that is not needed")
	}
	p, _ := of(k.language)
	x = &server{in: s, key: k, id: sandbox.NewProcessID(), program: p, ready: make(chan struct{}), gone: make(chan struct{}), turn: make(chan struct{}, 1), open: make(map[string]*document)}
	s.servers[k] = x
	return x, true, nil
}

// forget takes a server out of what is there.
func (s *Service) forget(x *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[x.key] == x {
		delete(s.servers, x.key)
	}
}

// Stop ends a server. Where none runs there is nothing to do.
func (s *Service) Stop(ctx context.Context, c access.Caller, ref string, at At) error {
	u, k, err := s.use(ctx, c, ref, at, new(check.Fields))
	if err != nil {
		return err
	}
	defer u.End()
	s.mu.Lock()
	x := s.servers[k]
	s.mu.Unlock()
	if x == nil {
		return nil
	}
	select {
	case <-x.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.forget(x)
	if x.failed != nil {
		return nil
	}
	polite, cancel := context.WithTimeout(ctx, stopBound)
	defer cancel()
	if x.client.Shutdown(polite) == nil {
		select {
		case <-x.gone:
			return nil
		case <-polite.Done():
		}
	}
	x.client.Close() // its goroutine ends the process
	select {
	case <-x.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask has do ask a server that runs, on behalf of a caller who waits a bounded time.
func (s *Service) ask(ctx context.Context, c access.Caller, ref string, at At, k *check.Fields, do func(context.Context, *engine.Use, *server) error) error {
	u, of, err := s.use(ctx, c, ref, at, k)
	if err != nil {
		return err
	}
	defer u.End()
	s.mu.Lock()
	x := s.servers[of]
	s.mu.Unlock()
	if x != nil {
		select {
		case <-x.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if x == nil || x.failed != nil || x.over() {
		return fault.New(fault.State, "no language server of %s runs for %s", at.Language, sandbox.Clip(of.project, 200)).
			WithReason(ReasonNotStarted).WithRemedy("start it first")
	}
	x.enter()
	defer x.leave()
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	return u.Fail(ctx, do(ctx, u, x))
}

// Open has a server read a file: what it says now, and before each question about it again.
func (s *Service) Open(ctx context.Context, c access.Caller, ref string, at At, file string) error {
	return s.ask(ctx, c, ref, at, named(file), func(ctx context.Context, u *engine.Use, x *server) error {
		_, err := x.tell(ctx, u, file)
		return err
	})
}

// Close has a server forget a file. One that is not open stays so.
func (s *Service) Close(ctx context.Context, c access.Caller, ref string, at At, file string) error {
	return s.ask(ctx, c, ref, at, named(file), func(ctx context.Context, u *engine.Use, x *server) error {
		return x.close(ctx, u, file)
	})
}

// Complete returns what may be written at a place of a file, which is opened where it is not.
func (s *Service) Complete(ctx context.Context, c access.Caller, ref string, at At, file string, p lsp.Position) (list lsp.CompletionList, err error) {
	err = s.ask(ctx, c, ref, at, named(file), func(ctx context.Context, u *engine.Use, x *server) error {
		uri, err := x.tell(ctx, u, file)
		if err != nil {
			return err
		}
		list, err = x.client.Complete(ctx, uri, p)
		return err
	})
	return list, err
}

// DocumentSymbols returns the symbols of a file, which is opened where it is not.
func (s *Service) DocumentSymbols(ctx context.Context, c access.Caller, ref string, at At, file string) (all []lsp.Symbol, err error) {
	err = s.ask(ctx, c, ref, at, named(file), func(ctx context.Context, u *engine.Use, x *server) error {
		uri, err := x.tell(ctx, u, file)
		if err != nil {
			return err
		}
		all, err = x.client.DocumentSymbols(ctx, uri)
		return err
	})
	return all, err
}

// MaxQuery bounds what symbols are looked for by, in bytes.
const MaxQuery = 1000

// Symbols returns the symbols of the project that a query finds, by the rules of the server.
func (s *Service) Symbols(ctx context.Context, c access.Caller, ref string, at At, query string) (all []lsp.Symbol, err error) {
	k := new(check.Fields)
	if len(query) > MaxQuery {
		k.Bad("query", "has %d bytes, more than %d", len(query), MaxQuery)
	}
	err = s.ask(ctx, c, ref, at, k, func(ctx context.Context, u *engine.Use, x *server) error {
		if err := x.retell(ctx, u); err != nil {
			return err
		}
		all, err = x.client.Symbols(ctx, query)
		return err
	})
	return all, err
}

// named checks the name of a file.
func named(file string) *check.Fields {
	k := new(check.Fields)
	k.Path("path", file)
	return k
}
