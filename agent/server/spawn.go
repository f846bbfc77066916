// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// spawn is the work between a command and its running process. Its steps run on the
// view's thread, since fork inherits from the thread that forks, and what it opens
// belongs to the view's user.
type spawn struct {
	child  [3]int // the child's ends of its streams
	ours   [3]int // our ends: stdin, stdout, stderr; -1: none
	master int    // of the terminal; -1: none
	pidfd  int
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

// run starts the command of p.
func (sp *spawn) run(p *process, st *wire.Start, in input) (failed *spawnError) {
	*sp = spawn{child: [3]int{-1, -1, -1}, ours: [3]int{-1, -1, -1}, master: -1, pidfd: -1}
	p.view.Do(func() { failed = sp.start(p, st, in) })
	closeAll(sp.child[:])
	if failed != nil {
		closeAll(sp.ours[:])
		closeAll([]int{sp.master})
		return failed
	}
	sp.adopt(p, st)
	return nil
}

func (sp *spawn) start(p *process, st *wire.Start, in input) *spawnError {
	p.began = time.Now()
	dir, err := p.srv.workDir(st.Cwd)
	if err != nil {
		return outside(err)
	}
	defer unix.Close(dir)
	env := p.srv.environment(p.view.Identity(), st)
	argv := st.Argv
	if st.Shell != "" {
		argv = []string{shell(), "-c", st.Shell}
	}
	if err := sp.streams(p.view.Identity(), st, in); err != nil {
		return outside(err)
	}
	id := p.view.Identity()
	cmd := fork.Command{
		Argv: argv, Env: env, Dir: dir, Files: sp.child, Terminal: sp.master >= 0, Group: -1,
		Credential: id.Credential, AmbientCaps: id.AmbientCaps,
	}
	if p.group != nil {
		cmd.Group = p.group.FD()
	}
	return sp.exec(p, cmd)
}

// exec forks and executes the first candidate that can be executed.
func (sp *spawn) exec(p *process, cmd fork.Command) *spawnError {
	refused := error(unix.ENOENT)
	for program := range candidates(cmd.Argv[0], cmd.Env) {
		cmd.Program = program
		err := sp.fork(p, cmd)
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
	name := clip(cmd.Argv[0], 200)
	switch {
	case refused == unix.ENOENT && !strings.Contains(cmd.Argv[0], "/"):
		return &spawnError{inside: true, code: exitNotFound, text: name + ": command not found"}
	case refused == unix.ENOENT:
		return &spawnError{inside: true, code: exitNotFound, text: name + ": no such file or directory"}
	case refused == errNoInterpreter:
		return &spawnError{inside: true, code: exitNotFound, text: name + ": its interpreter or loader was not found"}
	case errors.Is(refused, unix.EPERM), errors.Is(refused, unix.ENOSYS), errors.Is(refused, unix.EINVAL):
		// Not of execve: the fork itself, or the step down to the user, was refused.
		return outside(fault.Wrap(fault.Internal, refused, "the command could not be started"))
	}
	return &spawnError{inside: true, code: exitNotExecutable, text: name + ": cannot execute: " + errorText(refused)}
}

// isThere tells whether a program's own file exists, as seen from dir.
func isThere(program string, dir int) bool {
	return unix.Faccessat(dir, program, unix.F_OK, 0) == nil
}

var errNoInterpreter = errors.New("interpreter not found")

// fork forks, and enters the child in the list of our own.
func (sp *spawn) fork(p *process, cmd fork.Command) (err error) {
	p.srv.forkMu.Lock()
	defer p.srv.forkMu.Unlock()
	// We stand still until the child has executed its program. It is the user's by
	// then, so the user's other processes may stop it on its way there. It kills itself
	// after a while; where [fork.Command] could not have it do so, it is in its group from the
	// first instant, and this does, given a processor of Go's.
	if cmd.Group >= 0 {
		defer time.AfterFunc(fork.Patience*time.Second, p.killGroup).Stop()
	}
	start := func() { p.pid, sp.pidfd, err = cmd.Start() }
	if f, ok := p.view.(Forker); ok {
		f.Fork(start)
	} else {
		start()
	}
	if err == nil {
		p.srv.children[p.pid] = p
	}
	return err
}

// adopt makes files of our ends.
func (sp *spawn) adopt(p *process, st *wire.Start) {
	if sp.pidfd >= 0 {
		p.pidfd = pollable(sp.pidfd, "pidfd")
	}
	limits := [3]int64{1: st.MaxStdout, 2: st.MaxStderr}
	if st.Rolling { // the log bounds itself
		limits = [3]int64{1: math.MaxInt64, 2: math.MaxInt64}
	}
	if sp.master >= 0 {
		p.terminal = pollable(sp.master, "terminal")
		p.streamStdin(p.terminal)
		p.streams[0] = newStream(wire.LogStdout, p.terminal, limits[1])
		return
	}
	if sp.ours[0] >= 0 {
		p.streamStdin(pollable(sp.ours[0], "stdin"))
	}
	p.streams[0] = newStream(wire.LogStdout, pollable(sp.ours[1], "stdout"), limits[1])
	p.streams[1] = newStream(wire.LogStderr, pollable(sp.ours[2], "stderr"), limits[2])
}

func newStream(t wire.Type, f *os.File, limit int64) *stream {
	raw, _ := f.SyscallConn() // fails for a nil file only
	return &stream{t: t, f: f, raw: raw, limit: limit}
}

// pollable gives fd to Go's poller, which takes what does not block. The kernel
// keeps to itself the flags that say for what it is open.
func pollable(fd int, name string) *os.File {
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return os.NewFile(uintptr(fd), name)
}

// streams makes the pipes, or the terminal.
func (sp *spawn) streams(id Identity, st *wire.Start, in input) error {
	if st.Terminal != nil {
		return sp.openTerminal(st.Terminal)
	}
	var err error
	switch {
	case in.f != nil:
		sp.child[0], err = unix.FcntlInt(in.f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	case st.StreamStdin:
		sp.child[0], sp.ours[0], err = pipe(id)
	default:
		sp.child[0], err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	for i := 1; i <= 2 && err == nil; i++ {
		sp.ours[i], sp.child[i], err = pipe(id)
	}
	if err != nil {
		return fault.Wrap(fault.Exhausted, err, "the command's streams could not be made: the sandbox has too many open files")
	}
	return nil
}

// pipe makes a pipe that belongs to the command's user, who may then open
// /dev/stdout and its like.
func pipe(id Identity) (r, w int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	if id.Credential != nil {
		_ = unix.Fchown(fds[0], int(id.Credential.Uid), int(id.Credential.Gid))
	}
	return fds[0], fds[1], nil
}

func closeAll(fds []int) {
	for i, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
			fds[i] = -1
		}
	}
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
func (s *Server) environment(id Identity, st *wire.Start) []string {
	env := map[string]string{
		"PATH": defaultPath, "HOME": id.Home, "USER": id.Name, "LOGNAME": id.Name,
		"LANG": "C.UTF-8", "SHELL": "/bin/bash", "PWD": st.Cwd,
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
			if dir == "" {
				dir = "."
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
