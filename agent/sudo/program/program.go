// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package program is the sudo that people type in a sandbox. It has no rights of its own: it reads the command
// line, asks the sandbox's agent, and passes on the terminal, signals and the exit status.
package program

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/sudo"
)

// patience bounds the wait for the agent's word on a request. It is longer than the agent's own.
const patience = 30 * time.Second

// Main runs sudo with the arguments behind its name, and returns its exit status.
func Main(args []string) int {
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sudo:", strings.ReplaceAll(err.Error(), "\n", " "))
		return 1
	}
	return code
}

func run(args []string) (int, error) {
	line, err := sudo.Parse(args)
	if err != nil {
		return 1, fmt.Errorf("%w\n%s", err, "(sudo -h lists the options)")
	}
	switch {
	case line.Help:
		fmt.Print(sudo.Usage)
		return 0, nil
	case line.Version:
		fmt.Println("sudo of a sandpit sandbox")
		return 0, nil
	case line.Forget && len(line.Argv) == 0 && !line.Login && !line.Shell:
		return 0, nil
	}
	conn, err := connect()
	if err != nil {
		return 1, err
	}
	defer conn.Close()
	r := &line.Request
	argv := r.Argv
	if r.Action == sudo.Validate {
		r.Argv = nil
	}
	r.Env = variables(r)
	for _, name := range line.Keep {
		if value, ok := os.LookupEnv(name); ok {
			r.Set = append(r.Set, name+"="+value)
		}
	}
	r.Cwd, _ = unix.Getwd() // without one the agent says what is wrong
	terminal := openTerminal(r)
	if err := r.Check(); err != nil {
		return 1, err
	}
	s := &session{conn: conn, terminal: terminal, signals: make(chan os.Signal, 32)}
	if r.Action == sudo.Run {
		s.catch()
	}
	if err := s.ask(r); err != nil {
		return 1, err
	}
	code, err := s.follow()
	if err == nil && line.List {
		return list(argv, r.User)
	}
	return code, err
}

// connect reaches the agent. One that takes no more connections is not waited for.
func connect() (*net.UnixConn, error) {
	for deadline := time.Now().Add(patience); ; {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: sudo.Socket, Net: "unix"})
		switch {
		case err == nil:
			return conn, nil
		case !errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("this sandbox's agent does not answer at %s: %w; run the command with user root instead", sudo.Socket, errors.Unwrap(err))
		case time.Now().After(deadline):
			return nil, errors.New("this sandbox's agent has too many requests of sudo's; try again")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// variables are those of the environment that may pass.
func variables(r *sudo.Request) (list []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if r.AllEnv || sudo.Always(name) || r.Shell && name == "SHELL" {
			list = append(list, v)
		}
	}
	return list
}

// list is sudo -l, of somebody who may use it.
func list(argv []string, user string) (int, error) {
	if len(argv) > 0 {
		_ = os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
		path, err := exec.LookPath(argv[0])
		if err != nil {
			return 1, nil
		}
		fmt.Println(strings.Join(append([]string{path}, argv[1:]...), " "))
		return 0, nil
	}
	host, _ := os.Hostname()
	name := os.Getenv("USER")
	if user != "" {
		name = user
	}
	fmt.Printf("User %s may run the following commands on %s:\n    (ALL) NOPASSWD: ALL\n", name, host)
	return 0, nil
}

// session is a request that was made.
type session struct {
	conn     *net.UnixConn
	terminal *terminal // nil: the command gets what we have
	signals  chan os.Signal
}

// caught are the signals that are passed on. Those that stop or continue us are not the command's.
var caught = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH,
}

func (s *session) catch() { signal.Notify(s.signals, caught...) }

// ask sends the request with the descriptors.
func (s *session) ask(r *sudo.Request) error {
	dir, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the working directory cannot be opened: %w", err)
	}
	defer unix.Close(dir)
	fds := []int{0, 1, 2, dir}
	for i := range 3 { // one that is closed is as one that leads nowhere
		if _, err := unix.FcntlInt(uintptr(i), unix.F_GETFD, 0); err != nil {
			null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("open /dev/null: %w", err)
			}
			defer unix.Close(null)
			fds[i] = null
		}
	}
	_ = s.conn.SetDeadline(time.Now().Add(patience))
	b := r.Encode()
	n, _, err := s.conn.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	if err == nil && n < len(b) {
		_, err = s.conn.Write(b[n:])
	}
	if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) { // else it says why
		return fmt.Errorf("the request cannot be sent to this sandbox's agent: %w", err)
	}
	return nil
}

// follow reads the agent's frames until the command has ended, and returns its exit status.
func (s *session) follow() (int, error) {
	for {
		f, fd, err := s.receive()
		if err != nil {
			s.terminal.restore()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return 1, fmt.Errorf("this sandbox's agent did not answer within %v", patience)
			}
			return 1, fmt.Errorf("this sandbox's agent ended the connection: %w", err)
		}
		switch f.Kind {
		case sudo.Refused:
			return 1, errors.New(f.Text)
		case sudo.Started:
			_ = s.conn.SetDeadline(time.Time{})
			if fd >= 0 && s.terminal != nil {
				s.terminal.begin(os.NewFile(uintptr(fd), "terminal"))
			}
			go s.pass() // ends with the process
		case sudo.Exited:
			s.terminal.end()
			return int(f.Value), nil
		case sudo.Killed:
			s.terminal.end()
			return dieOf(syscall.Signal(f.Value)), nil
		default:
			s.terminal.restore()
			return 1, fmt.Errorf("this sandbox's agent sent a frame of kind %q", f.Kind)
		}
	}
}

// receive reads a frame, with the descriptor that comes along or -1.
func (s *session) receive() (f sudo.Frame, fd int, err error) {
	var b [sudo.FrameLen]byte
	var oob [64]byte
	fd = -1
	n, oobn, _, _, err := s.conn.ReadMsgUnix(b[:], oob[:])
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return f, -1, err
	}
	if oobn > 0 {
		if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(messages) == 1 {
			if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) > 0 {
				fd = fds[0]
			}
		}
	}
	if _, err := io.ReadFull(s.conn, b[n:]); err != nil {
		return f, fd, err
	}
	f = sudo.ParseFrame(b)
	if f.Kind == sudo.Refused {
		text := make([]byte, min(f.Value, sudo.MaxText))
		if _, err := io.ReadFull(s.conn, text); err != nil {
			return f, fd, err
		}
		f.Text = string(text)
	}
	return f, fd, nil
}

// pass passes signals on.
func (s *session) pass() {
	for got := range s.signals {
		sig, ok := got.(syscall.Signal)
		if !ok {
			continue
		}
		if sig == syscall.SIGWINCH && s.terminal != nil {
			s.terminal.resize()
			continue
		}
		_, _ = s.conn.Write(sudo.Frame{Kind: sudo.Signal, Value: uint32(sig)}.Append(nil))
	}
}

// dieOf ends us as the command was ended, so that whoever waits for us sees the signal. It returns where we do not
// die of it.
func dieOf(sig syscall.Signal) int {
	// The kernel's own default: Go's is to print its stacks for some of them.
	var byDefault [4]uint64 // the kernel's struct sigaction
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(100 * time.Millisecond) // it arrives on another thread
	return 128 + int(sig)
}
