// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// breakage is how a connection to the Engine breaks at one of the calls that change something.
type breakage int

const (
	unasked    breakage = iota // the Engine never sees the call
	unanswered                 // it does what it is asked, and the answer is lost
	away                       // it does, and is away until the verb has failed
	ended                      // the same, and the server has ended, too
	silent                     // neither this call nor any other gets to the Engine or an answer, until the verb has failed; no connection breaks
	half                       // the Engine does it, and the answer has a head alone; else as silent
)

func (b breakage) String() string {
	return [...]string{"Unasked", "Unanswered", "Away", "Ended", "Silent", "Half"}[b]
}

// hangs reports whether no connection breaks.
func (b breakage) hangs() bool { return b >= silent }

// brokenLine is an Engine's socket that breaks at the at-th call that changes something.
type brokenLine struct {
	socket string
	engine *httputil.ReverseProxy
	clock  hurriedClock // of who calls, which hurries while the line hangs

	mu    sync.Mutex
	how   breakage
	at    int // 0: never
	calls int
	broke string // the call at which it did
	every bool   // at counts all calls but those for events
	dead  bool
	held  chan struct{}      // closed when the line that hangs does not any more; nil: it does not
	cut   context.CancelFunc // ends every call that is under way
	whole context.Context    // until cut
}

// newBrokenLine listens until the test ends.
func newBrokenLine(t *testing.T, engine string) *brokenLine {
	t.Helper()
	dir, err := os.MkdirTemp("", "line") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	l := &brokenLine{socket: filepath.Join(dir, "s"), engine: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", engine)
	}}
	l.engine.Transport, l.engine.FlushInterval = transport, -1
	l.engine.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	listener, err := net.Listen("unix", l.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	l.whole, l.cut = context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.mend()
		l.breakAll()
		_ = server.Close()
		<-served
		transport.CloseIdleConnections()
		_ = os.RemoveAll(dir)
	})
	return l
}

// breakAt has the line break at the at-th call from now on.
func (l *brokenLine) breakAt(how breakage, at int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.how, l.at, l.calls, l.broke = how, at, 0, ""
}

// mend returns at which call it broke; "" if there were fewer.
func (l *brokenLine) mend() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.dead = 0, false
	if l.held != nil {
		close(l.held)
		l.held = nil
		l.clock.hurry(false)
	}
	return l.broke
}

// breakAll ends every call that is under way, streams, too.
func (l *brokenLine) breakAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
	l.whole, l.cut = context.WithCancel(context.Background())
}

// hang has the line hang from now on.
func (l *brokenLine) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
	l.clock.hurry(true)
}

// wait waits while the line hangs, and reports whether it did.
func (l *brokenLine) wait(ctx context.Context) bool {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held == nil {
		return false
	}
	select {
	case <-held:
	case <-ctx.Done():
	}
	return true
}

// waiting is an answer that waits while the line hangs.
type waiting struct {
	http.ResponseWriter
	ctx  context.Context
	line *brokenLine
}

func (w *waiting) Write(p []byte) (int, error) {
	w.line.wait(w.ctx)
	return w.ResponseWriter.Write(p)
}

func (w *waiting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ServeHTTP is one call.
func (l *brokenLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	breaks := false
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.whole, cancel)()
	if l.every && !strings.HasSuffix(r.URL.Path, "/events") || r.Method != http.MethodGet && r.Method != http.MethodHead {
		l.calls++
		breaks = l.calls == l.at
	}
	dead, how := l.dead, l.how
	if breaks && !dead {
		l.broke = r.Method + " " + r.URL.Path
	}
	l.mu.Unlock()
	if l.wait(ctx) { // and who called has given up
		panic(http.ErrAbortHandler)
	}
	switch {
	case breaks && how == silent:
		l.hang()
		l.wait(ctx)
		panic(http.ErrAbortHandler)
	case breaks && how == half:
		answer := httptest.NewRecorder()
		l.engine.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		l.hang() // before who called has its answer, where that has no body
		w.WriteHeader(answer.Code)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // a server's is one
		l.wait(ctx)
		panic(http.ErrAbortHandler)
	case dead || breaks && how == unasked:
		panic(http.ErrAbortHandler)
	case !breaks:
		l.engine.ServeHTTP(&waiting{w, ctx, l}, r.WithContext(ctx))
		return
	}
	// The Engine has done it, whatever becomes of who asked.
	l.engine.ServeHTTP(&unread{}, r.WithContext(context.WithoutCancel(r.Context())))
	l.mu.Lock()
	if l.dead = how == away || how == ended; l.dead {
		l.cut()
		l.whole, l.cut = context.WithCancel(context.Background())
	}
	l.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// unread takes an answer that nobody gets.
type unread struct{ header http.Header }

func (u *unread) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }
func (u *unread) WriteHeader(int)             {}

// brokenVerb is a verb that is tried once for each call to the Engine by which it changes something.
type brokenVerb struct {
	name    string
	prepare func(b *broken) // nil: there is nothing to do on a line that is whole
	// does is the verb. The sandbox is up, and its file says "now"; the snapshot's says "kept".
	does func(b *broken) error
	// then is what must hold when it failed or not, on a line that is whole again.
	then func(b *broken)
}

// broken is one attempt.
type broken struct {
	*place
	line     *brokenLine
	i        runtime.Instance
	spec     runtime.Spec
	snapshot sandbox.ID
	other    sandbox.ID // what the verb was to make, or to remove
	failed   bool       // the verb did
}

// again opens the driver as the next server does.
func (b *broken) again() {
	b.t.Helper()
	b.must(b.driver.Close())
	b.driver = openWith(b.t, docker.Options{Dir: b.dir, Namespace: b.namespace, Engine: engineapi.Environment{Host: "unix://" + b.line.socket}})
	i, err := b.driver.Open(b.t.Context(), runtime.Handle{ID: b.spec.ID})
	b.must(err)
	b.i = i
}

// holds resumes or starts the sandbox where it has to, and wants its file to say one of these.
func (b *broken) holds(want ...string) {
	b.t.Helper()
	if p := b.i.(runtime.Pauser); p.Paused() {
		b.must(p.Resume(b.t.Context()))
	}
	if conn, err := b.i.Dial(b.t.Context()); err == nil {
		_ = conn.Close()
	} else {
		b.wait(b.i) // it may have been killed just now
		b.must(b.i.Start(b.t.Context(), b.spec))
	}
	got := b.run(b.i, agent.Command{Shell: "cat file"})
	for _, w := range want {
		if got == w+"\n" {
			return
		}
	}
	b.t.Errorf("its file says %q, want one of %q", got, want)
}

// left wants the sandbox's container alone, and no image but the snapshot's and those that are wanted.
func (b *broken) left(snapshots ...sandbox.ID) {
	b.t.Helper()
	list, err := b.engine.ListContainers(b.t.Context(), "dev.sandpit.server="+b.namespace)
	b.must(err)
	if len(list) != 1 {
		b.t.Errorf("%d containers are there, want the sandbox's: %+v", len(list), list)
	}
	if got := b.snapshots(); len(got) != 1+len(snapshots) {
		b.t.Errorf("the snapshots are %v, want %v and %v", got, b.snapshot, snapshots)
	}
	if got := b.images(); len(got) != 1+len(snapshots) {
		b.t.Errorf("the images are %v", got)
	}
}

func brokenVerbs() []brokenVerb {
	return []brokenVerb{
		{"Create", nil, func(b *broken) error {
			spec := b.place.spec()
			spec.From, b.other = b.snapshot, spec.ID
			_, err := b.driver.Create(b.t.Context(), spec)
			return err
		}, func(b *broken) {
			b.holds("now")
			for _, id := range b.ids() {
				if id == b.other {
					if b.failed && b.line.how < away {
						b.t.Error("it is there, though it was refused")
					}
					i, err := b.driver.Open(b.t.Context(), runtime.Handle{ID: id})
					b.must(err)
					b.must(i.Remove(b.t.Context()))
				}
			}
			b.left()
		}},
		{"Snapshot", nil, func(b *broken) error {
			b.other = sandbox.NewID()
			_, err := b.driver.Snapshot(b.t.Context(), b.spec.ID, b.other)
			return err
		}, func(b *broken) {
			b.holds("now")
			b.must(b.driver.RemoveSnapshot(b.t.Context(), b.other))
			b.left()
		}},
		{"Rollback", func(b *broken) { b.must(b.i.Stop(b.t.Context(), 0)) }, func(b *broken) error {
			return b.driver.Rollback(b.t.Context(), b.spec.ID, b.snapshot, b.spec.Limits)
		}, func(b *broken) {
			b.holds("now", "kept")
			b.must(b.i.Stop(b.t.Context(), 0))
			b.must(b.driver.Rollback(b.t.Context(), b.spec.ID, b.snapshot, b.spec.Limits))
			b.holds("kept")
			b.left()
		}},
		{"StopAndStart", nil, func(b *broken) error {
			if err := b.i.Stop(b.t.Context(), 0); err != nil {
				return err
			}
			return b.i.Start(b.t.Context(), b.spec)
		}, func(b *broken) {
			b.holds("now")
			b.must(b.i.Stop(b.t.Context(), 0))
			b.holds("now")
			b.left()
		}},
		{"PauseAndResume", nil, func(b *broken) error {
			p := b.i.(runtime.Pauser)
			if err := p.Pause(b.t.Context()); err != nil {
				return err
			}
			return p.Resume(b.t.Context())
		}, func(b *broken) {
			b.holds("now")
			b.must(b.i.(runtime.Pauser).Pause(b.t.Context()))
			b.holds("now")
			b.left()
		}},
		{"Resize", nil, func(b *broken) error {
			l := b.spec.Limits
			l.Pids += 10
			return b.i.(runtime.Resizer).Resize(b.t.Context(), l)
		}, func(b *broken) {
			b.must(b.i.(runtime.Resizer).Resize(b.t.Context(), b.spec.Limits))
			b.holds("now")
			b.left()
		}},
		{"Remove", func(b *broken) {
			i, _ := b.from(b.snapshot)
			b.other = i.Handle().ID
		}, func(b *broken) error {
			i, err := b.driver.Open(b.t.Context(), runtime.Handle{ID: b.other})
			b.must(err)
			return i.Remove(b.t.Context())
		}, func(b *broken) {
			if i, err := b.driver.Open(b.t.Context(), runtime.Handle{ID: b.other}); err == nil {
				b.must(i.Remove(b.t.Context()))
			}
			b.holds("now")
			b.left()
		}},
		{"RemoveSnapshot", func(b *broken) { b.other = b.keep(b.spec.ID) }, func(b *broken) error {
			return b.driver.RemoveSnapshot(b.t.Context(), b.other)
		}, func(b *broken) {
			b.must(b.driver.RemoveSnapshot(b.t.Context(), b.other))
			b.holds("now")
			b.left()
		}},
	}
}

// Each verb is tried once for each call by which it changes something, with a line to the Engine that
// breaks at that call, or for each call at all: neither the sandbox nor its disk is lost, and nothing is left behind.
func brokenLines(t *testing.T, p *place, verbs []brokenVerb, every bool, hows ...breakage) {
	line := newBrokenLine(t, p.host.Socket())
	for _, verb := range verbs {
		for _, how := range hows {
			t.Run(fmt.Sprint(verb.name, "/", how), func(t *testing.T) {
				q := *p
				q.t, q.dir, q.namespace = t, t.TempDir(), newNamespace()
				b := &broken{place: &q, line: line}
				line.mend()
				line.every = every
				b.driver = openWith(t, docker.Clocked(docker.Options{Dir: b.dir, Namespace: b.namespace, Engine: engineapi.Environment{Host: "unix://" + line.socket}}, &line.clock))
				defer func() { b.must(b.driver.Close()) }()
				b.i, b.spec, _ = b.create()
				b.run(b.i, agent.Command{Shell: "echo kept > file"})
				b.snapshot = b.keep(b.spec.ID)
				for at := 1; ; at++ {
					if at > 40 {
						t.Fatal("the verb calls the Engine without an end")
					}
					b.run(b.i, agent.Command{Shell: "echo now > file; sync"})
					if verb.prepare != nil {
						verb.prepare(b)
					}
					line.breakAt(how, at)
					err := verb.does(b)
					b.failed = err != nil
					broke := line.mend()
					if broke == "" {
						if err != nil {
							t.Fatalf("on a line that is whole: %v", err)
						}
						verb.then(b)
						break
					}
					t.Logf("%d: %s: %v", at, broke, err)
					if how.hangs() && err != nil && (!fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), " did not ") || fault.As(err).Remedy == "") {
						t.Errorf("it is told as %v (%s), want what the Engine did not do, and what to do", err, fault.Of(err))
					}
					if how == ended {
						b.again()
					}
					verb.then(b)
					if t.Failed() {
						t.Fatalf("after %s, the call %d of %s, was %s", broke, at, verb.name, how)
					}
				}
				b.must(b.driver.RemoveSnapshot(t.Context(), b.snapshot))
				b.must(b.i.Remove(t.Context()))
			})
		}
	}
}
