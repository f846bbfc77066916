// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/buffer"
	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/changed"
	"sandpit.dev/agent/server/files"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/ports"
	"sandpit.dev/agent/server/tree"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/server/watched"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// Options is what a Server works with. User and Log are required.
type Options struct {
	User view.View // of commands and files by default
	Root view.View // of those that ask for root; nil: they are denied
	Log  *os.File  // an open directory for the processes' logs, out of the commands' reach; stays the caller's

	Groups Groups // nil: kills are weaker, see the package's doc

	Dir       string // the directory that stands for "/" in paths and cwd; "": /
	Workspace string // where commands start and relative paths begin, inside; "": /workspace

	// Account is what [Server.Begin] is to be called with; nil: it is not.
	Account *Account

	// Expose makes a directory, which is open, writable for the user, whose view of the system is
	// read-only. Nil: there is no such view, or nothing can be done about it.
	Expose func(dir int) error

	// OOMKills and PidsRefusals read counters of the commands' limits; nil:
	// unknown, and then nothing is said to have ended by them.
	OOMKills, PidsRefusals func() (int64, error)

	// End ends the process, as a call asks for; nil: no call can.
	End func()

	// Disk is what calls read and fill as one archive; nil: no call can.
	Disk *Disk

	// Lost tells what was changed of the root outside of the disk; nil: no call can ask.
	Lost func() wire.Lost

	// Init: the process is 1 in its pid namespace, and called [BecomeInit].
	Init bool

	// Threads are kept when it rests, where the process is 1; 0: the few that it needs.
	Threads int

	// Reap: the kernel keeps no status of a process that it reaped by itself (before
	// Linux 6.15, see [kept.Works]), so the Server reaps all children of process 1. Without
	// Init it means nothing.
	Reap bool

	// Score is the oom_score_adj(5) of commands, which they lower no further than to the
	// server's own; OpenFiles how many descriptors each of their processes has at most. 0: as
	// the server's own process.
	Score, OpenFiles uint32

	// SudoSocket: commands reach a socket that [Server.ServeSudo] answers, and find sudo's program in
	// [sudo.BinDir].
	SudoSocket bool

	// BoundSockets: the network namespace is the commands' own, and they are ended when its
	// sockets hold much that no limit of memory counts.
	BoundSockets bool

	// Refresh brings up to date what tells commands of their limits and use: before each command
	// starts, and about each second while one runs. Nil: nothing does.
	Refresh func()

	Env     map[string]string // of every command, over the built-in and under its own
	Version string            // told by a ping
	Lacks   map[string]string // told by a ping, see wire.Info

	MaxFinished int   // logs of finished processes that are kept; 0: 1000
	MaxLogBytes int64 // of all logs together, those of running processes too; 0: 256 MiB

	Logger *slog.Logger // nil: silent
}

const (
	defaultWorkspace   = "/workspace"
	defaultMaxFinished = 1000
	defaultMaxLogBytes = 256 << 20
	maxConns           = 4096
	maxRunning         = 4096
	requestPatience    = 30 * time.Second // between the parts of a request
	heardPatience      = time.Second      // for who has the last answer
)

// Server answers calls. It is safe for concurrent use.
type Server struct {
	o       Options
	logDir  int
	conns   atomic.Int64
	streams atomic.Int64   // see stream
	lists   chan struct{}  // held by the calls that make lists
	work    sync.WaitGroup // every goroutine that is not a connection's
	memory  buffer.Pool
	rest    idleTask // frees memory
	spare   idleTask // ends threads
	values  redactCache
	budget  budget
	pause   suspension
	account atomic.Pointer[ownAccount] // never nil
	files   *files.Service
	ports   *ports.Service
	sockets socketWatch
	sudo    sudoers
	changed *changed.Tracker
	watched *watched.Hub
	reaper  reaper          // nothing, without Options.Reap
	ctx     context.Context // ends with Close: it bounds the Server's own goroutines, no call
	end     context.CancelFunc

	forkMu   sync.Mutex       // held across fork and registration, so that no number is taken for that of an older child
	children map[int]*process // under forkMu, by pid, until reaped

	mu       sync.Mutex
	procs    map[string]*process // that run, or have left something that does; nil value: being started
	unsealed []*process          // finished; the disk refused the end of their logs
	refuse   int                 // shutdowns in progress
	closed   bool
}

// New makes a server. It starts nothing.
func New(o Options) *Server {
	if o.Workspace == "" {
		o.Workspace = defaultWorkspace
	}
	if o.Dir == "" {
		o.Dir = "/"
	}
	if o.MaxFinished == 0 {
		o.MaxFinished = defaultMaxFinished
	}
	if o.MaxLogBytes == 0 {
		o.MaxLogBytes = defaultMaxLogBytes
	}
	o.Reap = o.Reap && o.Init // else the children are also somebody else's
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		o: o, logDir: int(o.Log.Fd()),
		children: make(map[int]*process), procs: make(map[string]*process),
		lists: make(chan struct{}, maxLists),
		sudo:  sudoers{slots: make(chan struct{}, sudoRunning)},
	}
	s.budget = budget{srv: s, limit: o.MaxLogBytes}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.account.Store(&ownAccount{view: o.User, workdir: o.Workspace})
	begin := s.work.Go
	s.files = files.New(files.Options{
		Dir: o.Dir, Workspace: func() string { return s.account.Load().workdir }, View: s.view, Buffers: &s.memory, Go: begin, Done: s.ctx.Done(), Logger: o.Logger,
	})
	s.ports = ports.New(func() view.View { return s.account.Load().view })
	s.changed, s.watched = changed.New(s.everything()), watched.New(s.everything(), begin)
	s.sockets.srv = s
	s.reaper = reaper{srv: s, born: make(chan struct{}, 1)}
	s.rest = idleTask{burst: memoryBurst, quiet: memoryQuiet, do: func() bool { debug.FreeOSMemory(); return true }}
	s.spare = idleTask{burst: 1, quiet: threadsQuiet, do: s.trimThreads}
	return s
}

// Serve answers connections off l until ctx is done, then closes l and the
// connections and waits for their handlers. Processes run on: another Serve,
// or Close, may follow. The error is nil then, and else that of l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var handlers sync.WaitGroup
	defer handlers.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) {
				s.o.Logger.Error("accept", "error", err)
				select { // the kernel would hand us the same connection at once
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			_ = l.Close()
			return err
		}
		handlers.Go(func() { s.serveConn(ctx, nc) })
	}
}

// Close kills every process with the cause "stopped", and waits until all of
// the Server's goroutines have ended. It comes after Serve has returned.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.shutdown(context.Background(), 0, "")
	s.end()
	s.rest.close()
	s.spare.close()
	s.work.Wait()
	s.giveUpUnsealed()
	return err
}

func (s *Server) serveConn(ctx context.Context, nc net.Conn) {
	c := call.New(nc)
	defer nc.Close()
	if s.conns.Add(1) > maxConns {
		s.conns.Add(-1)
		c.Fail(fault.New(fault.Exhausted, "the sandbox's agent has %d open connections, its bound", maxConns).
			WithRemedy("close some followers and try again"))
		return
	}
	defer s.conns.Add(-1)
	defer s.rest.used()
	defer s.threaded()
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	_ = nc.SetReadDeadline(time.Now().Add(requestPatience))
	req, err := c.Request()
	if err != nil {
		if !call.IsCut(err) {
			c.Fail(err)
		}
		return
	}
	_ = nc.SetReadDeadline(time.Time{})
	switch req.Op {
	case wire.OpStart, wire.OpStartMasked, wire.OpStartMerged, wire.OpRunIn, wire.OpWrite, wire.OpWriteWith, wire.OpWriteIf, wire.OpUnpack, wire.OpUnpackEach, wire.OpFillDisk: // they ask when all has come
	default:
		if c.Gone() {
			return
		}
	}
	if err := s.dispatch(ctx, c, req); err != nil {
		c.Fail(err)
	}
}

// dispatch runs one call. Its error is sent as a Failure.
func (s *Server) dispatch(ctx context.Context, c *call.Conn, req *wire.Request) error {
	switch req.Op {
	case wire.OpPing:
		s.mu.Lock()
		n := len(s.procs) - len(s.unsealed)
		s.mu.Unlock()
		return c.Answer(wire.Info{
			Version: s.o.Version, Protocol: wire.Version, PID: os.Getpid(), Processes: n, Lacks: s.o.Lacks,
			ClockMS: tree.Clock().Milliseconds(),
		})
	case wire.OpStart, wire.OpStartMasked, wire.OpStartMerged:
		return s.serveStart(ctx, c, req)
	case wire.OpRunIn:
		return s.serveRunIn(ctx, c, req)
	case wire.OpConclude:
		return s.tell(ctx, c, req)
	case wire.OpAttach:
		return s.stream(func() error { return s.serveAttach(ctx, c, req) })
	case wire.OpProcess:
		rec, err := s.record(req.ID)
		if err != nil {
			return err
		}
		return c.Answer(rec)
	case wire.OpProcesses:
		return s.list(ctx, c, func() error { return s.serveProcesses(c, req) })
	case wire.OpSignal:
		leave, err := s.mayStop(ctx, unix.Signal(req.Signal))
		if err != nil {
			return err
		}
		defer leave()
		return c.Outcome(s.signal(req))
	case wire.OpWait:
		return s.serveWait(ctx, c, req)
	case wire.OpInput, wire.OpLargeInput:
		return s.serveInput(ctx, c, req)
	case wire.OpLimitLogs:
		return c.Outcome(s.limitLogs(req))
	case wire.OpResize:
		return c.Outcome(s.resize(req.ID, req.Cols, req.Rows))
	case wire.OpKill:
		ctx, done := c.Until(ctx)
		defer done()
		return c.Outcome(s.kill(ctx, req.ID, req.Cause))
	case wire.OpShutdown:
		ctx, done := c.Until(ctx)
		defer done()
		return c.Outcome(s.shutdown(ctx, time.Duration(req.GraceMS)*time.Millisecond, req.Cause))
	case wire.OpEnd:
		if s.o.End == nil {
			break
		}
		ctx, done := c.Until(ctx)
		defer done()
		if err := s.shutdown(ctx, time.Duration(req.GraceMS)*time.Millisecond, ""); err != nil {
			return err
		}
		defer s.o.End()
		if err := c.Outcome(nil); err != nil {
			return err
		}
		select { // who asked hangs up once it has the answer, which goes nowhere when the agent is over
		case <-ctx.Done():
		case <-time.After(heardPatience):
		}
		return nil
	case wire.OpSuspend:
		ctx, done := c.Until(ctx)
		defer done()
		return c.Outcome(s.suspend(ctx, req.Turn))
	case wire.OpContinue:
		return c.Outcome(s.proceed(req.Turn))
	case wire.OpReadDisk:
		ctx, done := c.Until(ctx)
		defer done()
		return s.stream(func() error { return s.readDisk(ctx, c) })
	case wire.OpFillDisk:
		return s.stream(func() error { return s.fillDisk(ctx, c) })
	case wire.OpSudo:
		return c.Outcome(s.setSudo(req.Sudo))
	case wire.OpAccount:
		return c.Outcome(s.setAccount(req.Account))
	case wire.OpAccountMade:
		return c.Outcome(s.account.Load().wait())
	case wire.OpLost:
		if s.o.Lost == nil {
			break
		}
		return c.Answer(s.o.Lost())
	case wire.OpPorts:
		return s.ports.List(ctx, c)
	case wire.OpDial:
		return s.ports.Dial(ctx, c, req)
	case wire.OpRead:
		return s.stream(func() error { return s.files.Read(c, req) })
	case wire.OpWrite, wire.OpWriteWith, wire.OpWriteIf:
		return s.files.Write(c, req)
	case wire.OpPack:
		ctx, done := c.Until(ctx)
		defer done()
		return s.stream(func() error { return s.files.Pack(ctx, c, req) })
	case wire.OpUnpack, wire.OpUnpackEach:
		return s.stream(func() error { return s.files.Unpack(ctx, c, req) })
	case wire.OpStat:
		return s.files.Stat(c, req)
	case wire.OpList:
		return s.list(ctx, c, func() error { return s.files.List(c, req) })
	case wire.OpTree:
		ctx, done := c.Until(ctx)
		defer done()
		return s.files.Tree(ctx, c, req)
	case wire.OpChange:
		ctx, done := c.Until(ctx)
		defer done()
		changed, err := s.files.Change(ctx, req)
		if err != nil {
			return err
		}
		return c.Answer(changed)
	case wire.OpReplace:
		ctx, done := c.Until(ctx)
		defer done()
		return s.files.Replace(ctx, c, req)
	case wire.OpSearch:
		ctx, done := c.Until(ctx)
		defer done()
		return s.files.Search(ctx, c, req)
	case wire.OpMkdir:
		return c.Outcome(s.files.Mkdir(req))
	case wire.OpMove:
		ctx, done := c.Until(ctx)
		defer done()
		return c.Outcome(s.files.Move(ctx, req))
	case wire.OpRemove, wire.OpRemoveIf:
		ctx, done := c.Until(ctx)
		defer done()
		return c.Outcome(s.files.Remove(ctx, req))
	case wire.OpChanges:
		return s.serveChanges(ctx, c, req)
	case wire.OpWatch:
		return s.serveWatch(ctx, c, req)
	}
	return fault.New(fault.Unsupported, "the sandbox's agent (version %s) does not know the operation %q", s.o.Version, message.Clip(req.Op, 40)).
		WithRemedy("stop and start the sandbox, so that it gets the current agent")
}
