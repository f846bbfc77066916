// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/sudo"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// spawn is the work between a command and its running process, begun by prepare and ended
// by run or drop. What it opens by a name it opens on the view's thread, as the view's user,
// and so it forks: the child inherits from the thread that forks.
type spawn struct {
	p         *process
	st        *wire.Start
	id        string
	dir       int    // where the command starts; -1: none
	child     [3]int // the child's ends of its streams
	master    int    // of the terminal; -1 as well
	pidfd     int
	argv, env []string
	program   string // what is looked for in place of the first of argv; "": that
}

// spawnError is why nothing runs. Where it is inside, the process stands with
// the code and the text that a shell would give; else err is the call's.
type spawnError struct {
	inside bool
	code   int
	text   string
	err    error
}

func outside(err error) *spawnError { return &spawnError{err: err} }

// Exit codes of a program that cannot be run, as in a shell.
const (
	exitNotFound      = 127
	exitNotExecutable = 126
)

// prepare makes of a command's needs what takes no thread of the view's: to change threads
// costs more than all of it, and is done once, when the command begins. It has nothing that
// others see, and takes in over.
func (s *Server) prepare(st *wire.Start, root bool, in *input) (*spawn, error) {
	defer in.close()
	view, err := s.view(st.User, root)
	if err != nil {
		return nil, err
	}
	sp := &spawn{
		p: &process{
			srv: s, view: view, merged: st.Merge, ended: make(chan struct{}), gone: make(chan struct{}),
			oomKills: counter(s.o.OOMKills), refusals: counter(s.o.PidsRefusals),
		},
		st: st, dir: -1, child: [3]int{-1, -1, -1}, master: -1, pidfd: -1,
		argv: st.Argv, env: s.environment(view.Identity(), st),
	}
	if st.Terminal == nil {
		if err := sp.pipes(in); err != nil {
			sp.drop()
			return nil, err
		}
	}
	return sp, nil
}

// run starts the command.
func (sp *spawn) run() (failed *spawnError) {
	p := sp.p
	if p.hosted != nil {
		return sp.host()
	}
	p.began = time.Now()
	p.view.Do(func() { failed = sp.start() })
	if failed != nil {
		sp.drop()
		return failed
	}
	p.srv.raiseScore(p.pid)
	descriptor.CloseAll(sp.child[:])
	_ = unix.Close(sp.dir)
	sp.dir = -1
	if sp.pidfd >= 0 {
		p.pidfd = pollable(sp.pidfd, "pidfd")
	}
	if sp.master >= 0 {
		p.terminal = pollable(sp.master, "terminal")
		sp.master = -1
		p.streamStdin(p.terminal)
		p.streams[0] = sp.stream(wire.LogStdout, p.terminal)
	}
	return nil
}

// start is what run does on the view's thread.
func (sp *spawn) start() *spawnError {
	p := sp.p
	var err error
	sp.dir, err = p.srv.workDir(sp.st.Cwd)
	if id := p.view.Identity(); err != nil && id.UID == 0 && sp.st.Cwd == id.Home {
		sp.dir, err = p.srv.workDir("/") // an image need not have a home of root's
	}
	if err != nil {
		return outside(err)
	}
	if sp.st.Shell != "" {
		sp.argv = []string{shell(), "-c", sp.st.Shell}
	}
	switch {
	case sp.st.Terminal != nil:
		err = sp.openTerminal(sp.st.Terminal)
	case sp.child[0] < 0:
		if sp.child[0], err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			err = noStreams(err)
		}
	}
	if err != nil {
		return outside(err)
	}
	id := p.view.Identity()
	cmd := fork.Command{
		Argv: sp.argv, Env: sp.env, Dir: sp.dir, Files: sp.child, Terminal: sp.master >= 0, Group: -1,
		OpenFiles:  p.srv.o.OpenFiles,
		Credential: id.Credential, AmbientCaps: id.AmbientCaps,
	}
	if p.group != nil {
		cmd.Group = p.group.FD()
	}
	return sp.exec(cmd)
}

// drop lets go of what was made for a command that does not run. Twice is fine.
func (sp *spawn) drop() {
	descriptor.CloseAll(sp.child[:])
	last := [2]int{sp.dir, sp.master}
	descriptor.CloseAll(last[:])
	sp.dir, sp.master = -1, -1
	p := sp.p
	for i, st := range p.streams {
		if st != nil {
			_ = st.f.Close()
			p.streams[i] = nil
		}
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	p.stdin, p.stdinTurn = nil, nil
	if p.feeder != nil {
		p.feeder.close()
		p.feeder = nil
	}
}

// exec forks and executes the first candidate that can be executed.
func (sp *spawn) exec(cmd fork.Command) *spawnError {
	refused, look := error(unix.ENOENT), cmp.Or(sp.program, cmd.Argv[0])
	for program := range candidates(look, cmd.Env) {
		cmd.Program = program
		err := sp.fork(cmd)
		if err == nil {
			return nil
		}
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
			return outside(fault.Wrap(fault.Exhausted, err, "the command was not started: the sandbox's limit of processes or of memory is reached (cause pids)").
				WithRemedy("kill processes in the sandbox, or give it a higher limit"))
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			if refused == unix.ENOENT && isThere(program, cmd.Dir) {
				refused = errNoInterpreter
			}
		default:
			refused = err
		}
		if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOEXEC) {
			break
		}
	}
	name := message.Clip(look, 200)
	switch {
	case refused == unix.ENOENT && !strings.Contains(look, "/"):
		return &spawnError{inside: true, code: exitNotFound, text: name + ": command not found"}
	case refused == unix.ENOENT:
		return &spawnError{inside: true, code: exitNotFound, text: name + ": no such file or directory"}
	case refused == errNoInterpreter:
		return &spawnError{inside: true, code: exitNotFound, text: name + ": its interpreter or loader was not found"}
	case errors.Is(refused, unix.EPERM), errors.Is(refused, unix.ENOSYS), errors.Is(refused, unix.EINVAL):
		// Not of execve: the fork itself, or the step down to the user, was refused.
		return outside(fault.Wrap(fault.Internal, refused, "the command could not be started"))
	}
	return &spawnError{inside: true, code: exitNotExecutable, text: name + ": cannot execute: " + message.Of(refused)}
}

// isThere reports whether a program's own file exists, as seen from dir.
func isThere(program string, dir int) bool {
	return unix.Faccessat(dir, program, unix.F_OK, 0) == nil
}

var errNoInterpreter = errors.New("interpreter not found")

// fork forks, and enters the child in the list of our own.
func (sp *spawn) fork(cmd fork.Command) (err error) {
	p := sp.p
	p.srv.forkMu.Lock()
	defer p.srv.forkMu.Unlock()
	if p.srv.o.Reap {
		if err := p.srv.reaper.begin(); err != nil {
			return err
		}
		p.buried = make(chan unix.WaitStatus, 1)
	}
	parent, below := p.group.(Parent)
	// We stand still until the child has executed its program. It is the user's by
	// then, so the user's other processes may stop it on its way there. It kills itself
	// after a while; where [fork.Command] could not have it do so, it is in its group from the
	// first instant, and this does, given a processor of Go's.
	if cmd.Group >= 0 {
		defer time.AfterFunc(fork.Patience*time.Second, p.killGroup).Stop()
	}
	start := func() { p.pid, sp.pidfd, err = cmd.Start() }
	if below {
		start = func() { p.pid, sp.pidfd, err = parent.Start(&cmd) }
	}
	if f, ok := p.view.(view.Forker); ok {
		f.Fork(start)
	} else {
		start()
	}
	if err == nil {
		if !below {
			p.srv.children[p.pid] = p
		}
		if p.srv.o.Reap {
			p.srv.reaper.expect()
		}
	}
	return err
}

func (sp *spawn) stream(t wire.Type, f *os.File) *stream {
	limit := sp.st.MaxStdout
	if t == wire.LogStderr {
		limit = sp.st.MaxStderr
	}
	if sp.st.Rolling || sp.st.Lossless { // the log bounds itself
		limit = math.MaxInt64
	}
	raw, _ := f.SyscallConn() // fails for a nil file only
	return &stream{t: t, f: f, raw: raw, limit: limit}
}

// pollable hands fd to Go's poller, which takes what does not block. The kernel
// keeps to itself the flags that say for what it is open.
func pollable(fd int, name string) *os.File {
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return os.NewFile(uintptr(fd), name)
}

// pipes makes the streams of a command that has no terminal, but for an empty stdin.
func (sp *spawn) pipes(in *input) error {
	p, id := sp.p, sp.p.view.Identity()
	var ours int
	var err error
	switch {
	case in.room > 0:
		if sp.child[0], ours, err = pipe(id); err == nil {
			p.feeder = &feeder{in: *in, to: pollable(ours, "stdin")}
			*in = input{}
		}
	case in.f != nil:
		sp.child[0], err = unix.FcntlInt(in.f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	case sp.st.StreamStdin:
		if sp.child[0], ours, err = pipe(id); err == nil {
			p.streamStdin(pollable(ours, "stdin"))
		}
	}
	for i, t := range []wire.Type{wire.LogStdout, wire.LogStderr} {
		if err != nil {
			break
		}
		if i == 1 && sp.st.Merge {
			sp.child[2], err = unix.FcntlInt(uintptr(sp.child[1]), unix.F_DUPFD_CLOEXEC, 3)
			break
		}
		if ours, sp.child[i+1], err = pipe(id); err == nil {
			p.streams[i] = sp.stream(t, pollable(ours, "output"))
		}
	}
	if err != nil {
		return noStreams(err)
	}
	return nil
}

func noStreams(err error) error {
	return fault.Wrap(fault.Exhausted, err, "the command's streams could not be made: the sandbox has too many open files")
}

// pipe makes a pipe that belongs to the command's user, who may then open
// /dev/stdout and its like.
func pipe(id view.Identity) (r, w int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	if id.Credential != nil {
		_ = unix.Fchown(fds[0], int(id.Credential.Uid), int(id.Credential.Gid))
	}
	return fds[0], fds[1], nil
}

// shell is bash, or sh where there is none.
func shell() string {
	if unix.Access("/bin/bash", unix.F_OK) == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is the built-in variables, the sandbox's and the command's, each
// over the one before.
func (s *Server) environment(id view.Identity, st *wire.Start) []string {
	env := map[string]string{
		"PATH": defaultPath, "HOME": id.Home, "USER": id.Name, "LOGNAME": id.Name,
		"LANG": "C.UTF-8", "SHELL": "/bin/bash", "PWD": st.Cwd,
	}
	if s.o.SudoSocket {
		env["PATH"] = sudo.BinDir + ":" + defaultPath // an image's own sudo gains no rights by its file
	}
	if st.Terminal != nil {
		env["TERM"] = st.Terminal.Term
	}
	maps.Copy(env, s.o.Env)
	maps.Copy(env, st.Env)
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// candidates are the files that a program's name may mean.
func candidates(name string, env []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if strings.Contains(name, "/") {
			yield(name)
			return
		}
		search := ""
		for _, v := range env {
			if list, ok := strings.CutPrefix(v, "PATH="); ok {
				search = list
			}
		}
		for dir := range strings.SplitSeq(search, ":") {
			switch {
			case dir == "":
				dir = "."
			case dir == sudo.BinDir && name != path.Base(sudo.Program): // it has no other
				continue
			}
			file := dir + "/" + name
			var st unix.Stat_t
			if !strings.HasPrefix(file, "/") { // relative to the command's cwd, not to ours
				if !yield(file) {
					return
				}
				continue
			}
			if unix.Stat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && !yield(file) {
				return
			}
		}
	}
}

// workDir opens a command's working directory, and checks that it may be entered.
// The child enters the descriptor: the path may lead elsewhere by then, when
// descriptors of the agent's are still open in the child. It runs within Do.
func (s *Server) workDir(cwd string) (int, error) {
	fd, err := s.files.Open(cwd, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		if err = unix.Faccessat2(fd, ".", unix.X_OK, unix.AT_EACCESS); err != nil {
			_ = unix.Close(fd)
		}
	}
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENOENT):
		return -1, fault.InvalidField("cwd", "%q does not exist", message.Clip(cwd, 200)).WithRemedy("make the directory first, or leave cwd out")
	case errors.Is(err, unix.ENOTDIR):
		return -1, fault.InvalidField("cwd", "%q is not a directory", message.Clip(cwd, 200))
	}
	return -1, fault.InvalidField("cwd", "%q cannot be entered: %s", message.Clip(cwd, 200), message.Of(err))
}
