// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages

import (
	"context"
	"strings"
	"sync"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/lsp"
	"sandpit.dev/sandbox"
)

// server is one language server, from before it is started.
type server struct {
	in      *Service
	key     key
	id      string // of its process
	program program

	ready  chan struct{} // closed when it was started, or failed
	failed error         // why it was not; to be read when ready is closed

	client  *lsp.Client        // likewise, as the next
	process *engine.Background //
	gone    chan struct{}      // closed when the process has ended, or our server does
	result  *sandbox.Result    // of the process; to be read when gone is closed, nil: not known

	turn chan struct{}        // has room for who tells of files
	open map[string]*document // by their absolute paths, for who has the turn

	mu    sync.Mutex
	asks  int // questions on their way
	clock *time.Timer
}

// started notes how the start went.
func (x *server) started(err error) {
	if x.failed = err; err != nil {
		x.in.forget(x)
	}
	close(x.ready)
}

// answers has a server that was started show that it is there.
func (x *server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	x.enter()
	defer x.leave()
	return x.client.Ping(ctx)
}

// over reports whether a server that was started is no more.
func (x *server) over() bool {
	select {
	case <-x.ready:
	default:
		return false
	}
	if x.failed != nil || !x.process.Up() {
		return true
	}
	select {
	case <-x.client.Done():
		return true
	default:
		return false
	}
}

// Bounds of the log of a server's process, in bytes. It has all that is said to it in memory instead.
const (
	maxLog  = 1 << 20
	maxSaid = 300 // of its standard error, for a message
)

// begin starts the process, and tells it of the project.
func (s *Service) begin(ctx context.Context, u *engine.Use, x *server) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	if err := x.look(ctx, u); err != nil {
		return err
	}
	cmd := agent.Command{
		ID: x.id, Argv: x.program.argv, Cwd: x.key.project, StreamStdin: true, Lossless: true, MaxStdout: maxLog, MaxStderr: maxLog,
	}
	if err := u.Prepare(ctx, &cmd); err != nil {
		return err
	}
	ev, err := u.NewEvent(sandbox.EventLanguageServer)
	if err != nil {
		return err
	}
	ev.Language = x.key.language
	p, _, err := u.StartBackground(ctx, cmd, ev, nil)
	if err != nil {
		return err
	}
	stream := newStream(ctx, p)
	x.process, x.client = p, lsp.New(stream)
	x.clock = time.AfterFunc(s.idle, x.client.Close)
	x.enter() // the start is a question, too
	defer x.leave()
	p.Watch(func(_ context.Context, res *sandbox.Result) {
		x.result = res
		close(x.gone)
	})
	s.engine.Go(x.run)
	if err := x.client.Initialize(ctx, x.key.project, x.program.options); err != nil {
		return x.notBegun(ctx, stream, err)
	}
	return nil
}

// look sees whether the project is a directory.
func (x *server) look(ctx context.Context, u *engine.Use) error {
	user, dir := "", x.key.project
	if err := u.Place(&user, &dir); err != nil {
		return err
	}
	fi, err := u.Client().Stat(ctx, dir, user)
	if fault.Is(err, fault.NotFound) || err == nil && fi.Type != sandbox.Directory && fi.TargetType != sandbox.Directory {
		return fault.InvalidField("project", "%q is not a directory of the sandbox", sandbox.Clip(x.key.project, 200))
	}
	return err
}

// notBegun says why a server did not answer to its first request, and ends it.
func (x *server) notBegun(ctx context.Context, said *stream, err error) error {
	x.client.Close()
	select {
	case <-x.gone:
	case <-ctx.Done():
		return err
	}
	words := said.words()
	if r := x.result; r != nil && (r.ExitCode == exitNoProgram || r.ExitCode == exitNotRun) && r.Cause == sandbox.CauseNone {
		return x.program.missing(words)
	}
	if fault.Is(err, fault.Unavailable) && words != "" {
		e := *fault.As(err)
		e.Message += "; it said: " + words
		return &e
	}
	return err
}

// The exit codes of a program that is not there, and of one that cannot be run.
const (
	exitNoProgram = 127
	exitNotRun    = 126
)

// run is the life of a server that was started: what it says is read until it is given up, then its process is ended.
func (x *server) run(ctx context.Context) {
	why := x.client.Run(ctx)
	x.process.Close()
	x.mu.Lock()
	x.clock.Stop()
	x.mu.Unlock()
	x.in.forget(x)
	if ctx.Err() != nil {
		return // the next server ends it
	}
	x.in.log.Debug("a language server is over", "sandbox", x.key.sandbox, "language", x.key.language, "process", x.id, "reason", why)
	again := time.NewTicker(killPause)
	defer again.Stop()
	for x.process.Up() {
		err := x.process.Kill(ctx)
		if err == nil {
			return
		}
		select {
		case <-x.gone:
			return
		case <-ctx.Done():
			return
		case <-again.C: // it is paused, or busy
		}
	}
}

const killPause = 10 * time.Second

// enter begins a question, during which the server is not idle. leave ends it.
func (x *server) enter() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asks++
	x.clock.Stop()
}

func (x *server) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asks--; x.asks == 0 {
		select {
		case <-x.client.Done():
		default:
			x.clock.Reset(x.in.idle)
		}
	}
}

// oneLine makes what a program said fit for a message.
func oneLine(b []byte) string {
	return sandbox.Clip(strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " "), maxSaid)
}
