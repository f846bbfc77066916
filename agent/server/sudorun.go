// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/agent/server/descriptor"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/tree"
	"sandpit.dev/agent/sudo"
	"sandpit.dev/agent/wire"
)

// run starts the command beside the caller's, and sees it through.
func (e *elevation) run(ctx context.Context) error {
	s := e.srv
	root, err := s.view("root", true)
	if err != nil {
		return err
	}
	who, err := s.lookUp(e.req.User)
	if err != nil {
		return err
	}
	sp, err := e.command(who)
	if err != nil {
		return err
	}
	sp.p.view = root
	defer sp.drop()
	if err := s.pause.enter(ctx); err != nil {
		return err
	}
	err = e.start(sp, who)
	s.pause.leave()
	if err != nil {
		return err
	}
	return e.follow(ctx, sp)
}

// command makes of the request what is executed, and as whom.
func (e *elevation) command(who *account) (sp *spawn, err error) {
	s, r := e.srv, e.req
	caller := s.account.Load().view.Identity().Name
	if e.uid == 0 {
		caller = "root"
	}
	name, argv := "", r.Argv
	base := []string{
		"PATH=" + sudo.BinDir + ":" + defaultPath, "HOME=" + who.home, "USER=" + who.name, "LOGNAME=" + who.name, "SHELL=" + who.shell,
		"SUDO_USER=" + caller, "SUDO_UID=" + strconv.Itoa(e.uid), "SUDO_GID=" + strconv.Itoa(e.gid),
	}
	switch {
	case r.Login || r.Shell:
		run := who.shell
		if r.Shell {
			for _, v := range r.Env {
				if v, ok := strings.CutPrefix(v, "SHELL="); ok && strings.HasPrefix(v, "/") {
					run = v
				}
			}
		}
		name, argv = run, []string{run}
		if r.Login {
			argv[0] = "-" + run[strings.LastIndexByte(run, '/')+1:]
		}
		if len(r.Argv) > 0 {
			argv = append(argv, "-c", sudo.Script(r.Argv))
		}
	case len(argv) == 0 || argv[0] == "":
		return nil, refuse("no command is given")
	default:
		name = argv[0]
	}
	base = append(base, "SUDO_COMMAND="+message.Clip(strings.Join(append([]string{name}, argv[1:]...), " "), 4096))
	env, refused := r.Environment(base)
	if len(refused) > 0 {
		return nil, refuse("refused by this sandbox: these variables may not be set for a command as another user: %s", message.Clip(strings.Join(refused, ", "), 400))
	}
	sp = &spawn{
		p:   &process{srv: s, group: e.caller.group, ended: make(chan struct{})},
		st:  &wire.Start{},
		dir: -1, child: [3]int{-1, -1, -1}, master: -1, pidfd: -1,
		argv: argv, env: env, program: name,
	}
	if r.Terminal != 0 {
		if r.Terminal&1 == 0 {
			return nil, refuse("the request asks for a terminal that is not its stdin")
		}
		if err := checkSize(r.Cols, r.Rows); err != nil {
			r.Cols, r.Rows = 80, 24
		}
	}
	return sp, nil
}

// start forks, on the root view's thread.
func (e *elevation) start(sp *spawn, who *account) (err error) {
	s, r := e.srv, e.req
	s.mu.Lock()
	refused := s.refuse > 0 || s.closed
	s.mu.Unlock()
	if refused {
		return refuse("all that runs in the sandbox is being ended; it starts nothing now")
	}
	if e.ended() || e.caller.lost() {
		return refuse("the program that asks has ended")
	}
	sp.p.view.Do(func() { err = e.fork(sp, who) })
	if err != nil {
		return err
	}
	s.raiseScore(sp.p.pid)
	if sp.pidfd >= 0 {
		sp.p.pidfd, sp.pidfd = pollable(sp.pidfd, "pidfd"), -1
	}
	if e.ended() { // the group may be another command's by now
		e.kill(sp.p)
	}
	// The command has its own: what the caller waits for the end of is not held up by ours.
	for _, fd := range e.files[:e.got] {
		_ = unix.Close(fd)
	}
	e.got = 0
	descriptor.CloseAll(sp.child[:])
	frame := sudo.Frame{Kind: sudo.Started}.Append(nil)
	_ = e.conn.SetWriteDeadline(time.Now().Add(sudoRequest))
	if r.Terminal == 0 {
		_, err = e.conn.Write(frame)
	} else {
		_, _, err = e.conn.WriteMsgUnix(frame, unix.UnixRights(sp.master), nil)
		_ = unix.Close(sp.master)
		sp.master = -1
	}
	_ = e.conn.SetWriteDeadline(time.Time{})
	if err != nil { // it is gone, and nobody hears of this
		e.kill(sp.p)
		sp.p.reap()
	}
	return err
}

// fork is what start does on the view's thread.
func (e *elevation) fork(sp *spawn, who *account) error {
	r := e.req
	var err error
	if sp.dir, err = e.directory(who); err != nil {
		return err
	}
	if r.Terminal != 0 {
		if err := sp.openTerminal(&wire.Terminal{Cols: r.Cols, Rows: r.Rows}); err != nil {
			return err
		}
		_ = unix.Fchown(sp.child[0], int(who.uid), -1)
	}
	files := [3]int{e.files[0], e.files[1], e.files[2]}
	for i := range files {
		if r.Terminal&(1<<i) != 0 {
			files[i] = sp.child[i]
		}
	}
	cmd := fork.Command{
		Argv: sp.argv, Env: sp.env, Dir: sp.dir, Files: files, Terminal: r.Terminal != 0,
		Group: sp.p.group.FD(), OpenFiles: e.srv.o.OpenFiles, Alone: true, Credential: who.credential(),
	}
	failed := sp.exec(cmd)
	switch {
	case failed == nil:
		return nil
	case failed.inside:
		return refusal{failed.text}
	case errors.Is(failed.err, unix.EINVAL), errors.Is(failed.err, unix.EPERM):
		return refuse("user %d is outside of this sandbox's range of users", who.uid)
	}
	return failed.err
}

// directory opens the caller's working directory as the root's view has it, by its path; the descriptor that came
// says which it has to be. No path of either kind leads through what the agent has open.
func (e *elevation) directory(who *account) (int, error) {
	if e.req.Login {
		if fd, err := e.srv.workDir(who.home); err == nil {
			return fd, nil
		}
		return e.srv.workDir("/")
	}
	if !strings.HasPrefix(e.req.Cwd, "/") {
		return -1, refuse("the working directory is gone, or is no path of this sandbox; change to another one")
	}
	fd, err := e.srv.workDir(e.req.Cwd)
	if err != nil {
		return -1, refuse("the working directory %s cannot be entered by root; change to another one", message.Clip(e.req.Cwd, 200))
	}
	var is, want unix.Stat_t
	if unix.Fstat(fd, &is) != nil || unix.Fstat(e.files[3], &want) != nil || is.Dev != want.Dev || is.Ino != want.Ino {
		_ = unix.Close(fd)
		return -1, refuse("the working directory %s cannot be entered by root: another one is there; change to it", message.Clip(e.req.Cwd, 200))
	}
	return fd, nil
}

// follow passes signals on until the command has ended, and says how. A caller that is gone takes it along.
func (e *elevation) follow(ctx context.Context, sp *spawn) error {
	p := sp.p
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listening := make(chan struct{})
	e.srv.work.Go(func() {
		defer close(listening)
		e.listen(p)
	})
	e.srv.work.Go(func() { // the connection may be in other hands than the caller's
		e.awaitPeer(ctx)
		if ctx.Err() == nil {
			e.kill(p)
		}
	})
	status := p.reap()
	close(p.ended)
	cancel()
	_ = e.peer.SetReadDeadline(longAgo)
	frame := sudo.Frame{Kind: sudo.Exited, Value: uint32(status.ExitStatus())}
	if status.Signaled() {
		frame = sudo.Frame{Kind: sudo.Killed, Value: uint32(status.Signal())}
	}
	_ = e.conn.SetWriteDeadline(time.Now().Add(sudoRequest))
	_, _ = e.conn.Write(frame.Append(nil))
	_ = e.conn.SetReadDeadline(longAgo)
	<-listening
	return nil
}

// listen takes the caller's signals, until the command has ended. The end of the connection, or what is no
// signal, kills it.
func (e *elevation) listen(p *process) {
	for {
		var b [sudo.FrameLen]byte
		if _, err := io.ReadFull(e, b[:]); err != nil {
			if p.hasEnded() {
				return
			}
			break
		}
		f := sudo.ParseFrame(b)
		if f.Kind != sudo.Signal || f.Value < 1 || f.Value > 64 {
			break
		}
		_ = p.signalFirst(unix.Signal(f.Value))
	}
	e.kill(p)
}

// awaitPeer waits for the caller's end.
func (e *elevation) awaitPeer(ctx context.Context) {
	raw, err := e.peer.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { return ctx.Err() != nil || readable(int(fd)) })
}

// kill ends the command and what descends from it, or is in its session. The rest of what the caller started stays.
func (e *elevation) kill(p *process) {
	_ = p.signalFirst(unix.SIGKILL)
	tree.Kill(func() []int { return tree.Below(p.pid, !p.hasEnded()) })
}

// account is who a command runs as.
type account struct {
	name, home, shell string
	uid, gid          uint32
	groups            []uint32
}

func (a *account) credential() *syscall.Credential {
	if a.uid == 0 {
		return nil // the view's own
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
}

// lookUp finds a user in the sandbox's own files, which hostile code may have written.
func (s *Server) lookUp(name string) (*account, error) {
	if name == "" {
		name = "root"
	}
	number := -1
	if n, ok := strings.CutPrefix(name, "#"); ok {
		v, err := strconv.ParseUint(n, 10, 32)
		if err != nil || v > accounts.MaxID {
			return nil, refuse("%q is no number of a user; one is 0 to %d", message.Clip(name, 40), accounts.MaxID)
		}
		number = int(v)
	}
	at, err := accounts.Root(s.o.Dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	all, err := accounts.List(at)
	if err != nil && name != "root" && number < 0 {
		return nil, refuse("the sandbox's users cannot be read: %s", message.Of(err))
	}
	found := slices.IndexFunc(all, func(e accounts.Entry) bool {
		return number < 0 && e.Name == name || number >= 0 && int(e.UID) == number
	})
	if own := s.o.User.Identity(); found < 0 && number < 0 && name == own.Name {
		// The sandbox's user is meant, as it is where a command's user is said, whatever it is called here.
		found = slices.IndexFunc(all, func(e accounts.Entry) bool { return int(e.UID) == own.UID })
	}
	switch {
	case found >= 0:
	case name == "root" || number == 0:
		return &account{name: "root", home: "/root", shell: shell()}, nil
	case number > 0:
		return &account{name: strconv.Itoa(number), home: "/", shell: shell(), uid: uint32(number), gid: uint32(number), groups: []uint32{uint32(number)}}, nil
	default:
		return nil, refuse("user %q is none of this sandbox; there are %s. Use one of them, or make it: sudo useradd -m NAME", message.Clip(name, 80), s.users(all))
	}
	e := all[found]
	a := &account{name: e.Name, home: e.Home, shell: e.Shell, uid: e.UID, gid: e.GID, groups: []uint32{e.GID}}
	if !strings.HasPrefix(a.home, "/") {
		a.home = "/"
	}
	if !strings.HasPrefix(a.shell, "/") {
		a.shell = shell()
	}
	if groups, err := accounts.Groups(at, e); err == nil {
		a.groups = groups
	}
	return a, nil
}
