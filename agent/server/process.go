// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/kept"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/wire"
	"sandpit.dev/internal/excerpt"
)

// process is one command: from the fork on until nothing of it is left.
//
// Its goroutines are one for each stream, and one that waits for its end and
// for that of what it leaves behind.
type process struct {
	srv      *Server
	view     view.View
	group    Group    // nil: there are no groups
	pid      int      // 0: it never ran
	pidfd    *os.File // nil: this kernel has none
	terminal *os.File // the pty's master; nil: no terminal
	limit    timeLimit
	deferred *time.Timer          // until the log's file is made
	began    time.Time            // with the monotonic clock
	buried   chan unix.WaitStatus // brings the status once the reaper has it; nil: there is none
	oomKills int64                // the counters' values when it began; below zero: unknown
	refusals int64
	pumps    sync.WaitGroup

	ended chan struct{} // closed when the first process has ended and the result stands
	gone  chan struct{} // closed when nothing is left of it, in the group or in memory

	hosted *hosting // of a command in a shell; nil: it is a process of its own

	feeder *feeder // of stdin that is stored; nil: there is none

	stdinMu    sync.Mutex
	stdin      *os.File      // streamed; nil: not, or closed. The terminal, if there is one
	stdinTurn  chan struct{} // orders those who write to stdin; nil: it is not streamed
	wideStdin  sync.Once     // of who has the turn
	stdinTaken atomic.Int64  // bytes that were written to it; who has the turn changes it

	mu          sync.Mutex
	rec         wire.Record
	merged      bool       // stderr is stdout
	streams     [2]*stream // stdout, stderr; nil: there is none
	log         *logFile
	readers     *readers      // followers that get all of the output; nil: there are none
	more        chan struct{} // closed when the log grew or the result stands; nil: nobody waits
	killCause   string        // why we killed it
	killDetail  string
	groupIsGone bool
	holders     int       // followers that read the log's file
	forgotten   bool      // it is out of memory; the last holder closes the log
	stored      *finished // the log on disk, once it is sealed
}

// stream is one of a process's outputs.
type stream struct {
	t   wire.Type
	f   *os.File
	raw syscall.RawConn

	over atomic.Bool // all that wrote for the process is dead: the pump ends

	readMu    sync.Mutex // orders its readers, and guards what follows
	eof       bool
	full      int        // reads that found the pipe full
	redaction *redaction // nil: nothing is masked

	// Under the process's mu.
	total, kept, limit int64
	discarded          int64 // since the pump last paused
	excerpt            excerpt.Writer
	cut                string // why it is truncated; "": it is not
}

// snapshot is the process's record as it stands.
func (p *process) snapshot() wire.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec := p.rec
	rec.LastSeq = p.log.seq
	return rec
}

// run begins the goroutines of a process that was forked.
func (p *process) run(timeout time.Duration) {
	for _, st := range p.streams {
		if st == nil {
			continue
		}
		p.pumps.Add(1)
		p.srv.work.Go(func() {
			defer p.pumps.Done()
			p.pump(st)
		})
	}
	if p.feeder != nil {
		p.srv.work.Go(p.feeder.run)
	}
	if timeout > 0 {
		p.limit.begin(timeout, func() {
			p.kill(wire.CauseTimeout, "its time limit of "+timeout.String()+" passed")
		})
	}
	p.deferred = time.AfterFunc(deferral, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.forgotten {
			p.log.makeFile()
		}
	})
	if p.hosted != nil {
		p.srv.work.Go(p.waitHosted)
		return
	}
	p.srv.work.Go(p.wait)
}

// output logs what one read brought, up to the stream's cap.
func (p *process) output(st *stream, b []byte) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int64(len(b) - wire.LogHeaderLen)
	st.total += n
	_, _ = st.excerpt.Write(b[wire.LogHeaderLen:])
	keep, why := min(n, st.limit-st.kept), wire.CutLimit
	if keep > 0 {
		if kept := p.log.output(b[:wire.LogHeaderLen+keep], st.t, now); kept < keep {
			keep, why = kept, p.log.why
		}
	}
	st.kept += keep
	st.discarded += n - keep
	if p.log.rolled {
		for _, other := range p.streams {
			if other != nil {
				other.truncate(wire.CutRolled)
			}
		}
	}
	if keep < n {
		st.truncate(why)
		if keep == 0 {
			return
		}
	}
	p.wakeLocked()
}

// truncate notes why not all of the stream is kept: the first reason for what is in no frame,
// or else that frames were let go of.
func (st *stream) truncate(why string) {
	if st.cut == "" || st.cut == wire.CutRolled {
		st.cut = why
	}
}

// wakeLocked tells the followers that there is more.
func (p *process) wakeLocked() {
	if p.more != nil {
		close(p.more)
		p.more = nil
	}
}

// wait sees the process through: its end, the result, and what it leaves behind.
func (p *process) wait() {
	status := p.reap()
	p.limit.end()
	p.deferred.Stop()
	p.awaitTree()
	p.drainRest()
	p.logAllHeld()
	p.conclude(status)
	// Who waits for the result goes first: in here, and where the kernel put the server's
	// thread behind ours, on this processor.
	runtime.Gosched()
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	p.closeStdin()
	p.retire()
}

// treePatience bounds the wait for a killed tree, whose members may be in the
// middle of a write to a slow disk.
const treePatience = 2 * time.Second

// awaitTree holds a killed process's result back until all that it started is
// gone too: the kernel ends them in its own time, and who reads "killed" may act
// on it at once.
func (p *process) awaitTree() {
	p.mu.Lock()
	killed, group := p.killCause != "", p.group
	p.mu.Unlock()
	if !killed || group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.srv.ctx, treePatience)
	defer cancel()
	if err := group.Empty(ctx); err != nil {
		p.srv.o.Logger.Error("waiting for a killed tree", "id", p.rec.ID, "error", err)
	}
}

// reap waits for the first process and takes its status. It waits in Go's
// poller, so that a running command costs no thread.
func (p *process) reap() (status unix.WaitStatus) {
	if err := p.awaitStatus(&status); err != nil {
		p.srv.o.Logger.Error("waiting for a process", "id", p.rec.ID, "error", err)
		status = unknownStatus
	}
	p.srv.forkMu.Lock()
	if p.srv.children[p.pid] == p { // the number may be another child's by now
		delete(p.srv.children, p.pid)
	}
	p.srv.forkMu.Unlock()
	return status
}

// unknownStatus is that of a process which stands still, and so of none that has ended.
const unknownStatus unix.WaitStatus = 0x7f

func (p *process) awaitStatus(status *unix.WaitStatus) error {
	parent, below := p.group.(Parent)
	if below {
		*status = parent.Status()
	} else if p.buried != nil {
		*status = <-p.buried
	}
	if below || p.buried != nil {
		if p.pidfd != nil {
			_ = p.pidfd.Close()
		}
		return nil
	}
	if p.pidfd == nil { // a kernel without pidfds: it costs a thread
		_, err := p.wait4(status, 0)
		return err
	}
	defer p.pidfd.Close()
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Read(func(fd uintptr) (done bool) {
		if p.srv.o.Init {
			*status, done, failed = kept.Status(int(fd))
		} else {
			done, failed = p.wait4(status, unix.WNOHANG)
		}
		return done || failed != nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// wait4 reaps the process, and tells whether it did.
func (p *process) wait4(status *unix.WaitStatus, options int) (bool, error) {
	pid, err := wait4(p.pid, status, options)
	return pid == p.pid, err
}

// maxBuffered is above what the kernel keeps of a terminal's output for its reader.
const maxBuffered = 256 << 10

// drainRest takes what the process had written when it ended, and no more: who
// still holds the pipe or the terminal may write for ever.
func (p *process) drainRest() {
	for _, st := range p.streams {
		if st != nil {
			p.drainBuffered(st)
		}
	}
}

// drainBuffered takes what is in a stream now.
func (p *process) drainBuffered(st *stream) {
	// Control keeps the descriptor open under us; it fails once the pump is through.
	_ = st.raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		switch {
		case st.f == p.terminal:
			// What was written to a terminal may be on its way to our end yet. A read
			// that finds nothing has the kernel deliver it first.
			n = maxBuffered
		case err != nil:
			n = wire.MaxData
		}
		p.drain(st, int(fd), n+1) // one more, to see the end where it is one
	})
}

// conclude makes the result stand.
func (p *process) conclude(status unix.WaitStatus) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	res := p.resultLocked(status, now)
	p.rec.State, p.rec.Result = wire.Exited, res
	p.endLocked(now)
}

// endLocked writes LogExit and tells who waits.
func (p *process) endLocked(now time.Time) {
	text, _ := json.Marshal(p.rec.Result)
	at := p.log.end()
	if p.log.add(wire.AppendLog(nil, wire.LogExit, p.log.seq, now, text), 2*maxTail) {
		p.log.exit = at
	}
	if p.readers != nil {
		p.readers.endWait()
	}
	close(p.ended)
	p.wakeLocked()
}

// retire waits until nothing of the process is left, and puts its log away.
func (p *process) retire() {
	p.removeGroup()
	p.endStreams()
	p.pumps.Wait()
	if p.feeder != nil {
		p.feeder.stop()
	}
	if p.terminal != nil {
		_ = p.terminal.Close()
	}
	p.putAway()
	p.srv.threaded()
	close(p.gone)
}

// endStreams ends the pumps of a process whose group is gone: who still holds its
// streams is of another command, and opened them below /proc. What the process
// itself wrote is taken all the same.
func (p *process) endStreams() {
	p.mu.Lock()
	gone := p.groupIsGone
	p.mu.Unlock()
	if !gone {
		return
	}
	for _, st := range p.streams {
		if st != nil {
			st.over.Store(true)
			_ = st.f.SetReadDeadline(longAgo)
		}
	}
}

func (p *process) removeGroup() {
	if p.group == nil {
		return
	}
	err := p.tryRemoveGroup()
	for err != nil && p.group.Empty(p.srv.ctx) == nil {
		if err = p.tryRemoveGroup(); err == nil {
			return
		}
		select { // a member that is dead and not yet reaped: the kernel lets go in a moment
		case <-p.srv.ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	if err != nil { // the server is closed, or the group is lost; it was killed either way
		p.srv.o.Logger.Error("removing a process group", "id", p.rec.ID, "error", err)
	}
}

// tryRemoveGroup removes the group while nobody is killing it.
func (p *process) tryRemoveGroup() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.group.Remove()
	p.groupIsGone = err == nil
	return err
}

// closeStdin ends the input of a process, and wakes who is writing to it.
func (p *process) closeStdin() {
	p.stdinMu.Lock()
	f := p.stdin
	p.stdin = nil
	p.stdinMu.Unlock()
	if f != nil && f != p.terminal {
		_ = f.Close()
	}
}

// done waits for the end of the first process.
func (p *process) done(ctx context.Context) error {
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
