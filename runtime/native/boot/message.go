// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Descriptors that the agent is started with, after the standard three.
const (
	ListenFD = 3 // a listening unix socket; its file is on the host only
	SocketFD = 4 // the agent's end of the pair
)

// Message is what the agent needs beside its files.
type Message struct {
	// AgentCaps is the agent's own bounding set, RootCaps that of commands that run
	// as the sandbox's root.
	AgentCaps, RootCaps uint64
	// UserFilter and RootFilter are seccomp programs, see package
	// seccomp/install: for commands of the sandbox's user, and of its root.
	UserFilter []byte
	RootFilter []byte
	// Reap: the kernel does not keep the status of whom it reaped, so the agent reaps.
	Reap bool
	// LogBytes is how much the logs of all processes may take together.
	LogBytes uint64
	// Score is what the kernel's out-of-memory killer adds for commands, in thousandths of
	// the memory, and OpenFiles how many descriptors each of their processes has at most; 0: as
	// the agent.
	Score, OpenFiles uint32
	// Account is what the sandbox's user is called; nil: as always.
	Account *Account
}

// Account is a sandbox's user and its directories. No field has a line break.
type Account struct {
	Name, Home, Workdir string
	Again               bool // the disk had it before: nothing that it says is to be heard
}

// text is the account as it travels; empty: none.
func (a *Account) text() string {
	if a == nil {
		return ""
	}
	again := ""
	if a.Again {
		again = "again"
	}
	return strings.Join([]string{a.Name, a.Home, a.Workdir, again}, "\n")
}

func parseAccount(text string) (*Account, error) {
	if text == "" {
		return nil, nil
	}
	f := strings.Split(text, "\n")
	if len(f) != 4 {
		return nil, fmt.Errorf("boot: an account of %d lines", len(f))
	}
	return &Account{Name: f[0], Home: f[1], Workdir: f[2], Again: f[3] != ""}, nil
}

// Files are the descriptors that travel with a [Message].
type Files struct {
	View   *os.File   // mount namespace of the user's commands
	Log    *os.File   // directory for the logs of processes
	Cgroup *os.File   // cgroup2 directory in which each command gets a group
	OOM    *os.File   // counter of out-of-memory kills
	Pids   *os.File   // counter of refused forks
	Facts  *os.File   // directory with the files that lie over the kernel's
	Sudo   *os.File   // a listening unix socket that the sandbox's sudo asks at
	Gauges Gauges     // what they are written from
	Joins  []*os.File // v1 tasks files, which the threads of commands join
}

// Gauges are files of the commands' cgroups that tell what they use and may use, of either
// version. The null device stands for one that this host does not have.
type Gauges struct {
	Memory, MemoryLimit, MemoryStat, CPU, Tasks *os.File
}

const (
	fixedFiles = 12
	maxJoins   = 8
	maxMessage = 20 << 10
	maxReply   = 1 << 10
)

func (f *Files) list() []*os.File {
	g := f.Gauges
	return append([]*os.File{f.View, f.Log, f.Cgroup, f.OOM, f.Pids, f.Facts, f.Sudo, g.Memory, g.MemoryLimit, g.MemoryStat, g.CPU, g.Tasks}, f.Joins...)
}

// A message is AgentCaps, RootCaps, the length of UserFilter and that of RootFilter, in the
// machine's order of bytes, a byte that is 1 for Reap, LogBytes, Score and OpenFiles, then the two
// filters and the text of the account. Both ends are one build: the server carries the agent that it starts.
const headerLen = 8 + 8 + 4 + 4 + 1 + 8 + 4 + 4

// Send sends m and its files over the server's end of the pair.
func Send(conn *net.UnixConn, m Message, f Files) error {
	b := make([]byte, 0, headerLen+len(m.UserFilter)+len(m.RootFilter))
	b = binary.NativeEndian.AppendUint64(b, m.AgentCaps)
	b = binary.NativeEndian.AppendUint64(b, m.RootCaps)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(m.UserFilter)))
	b = binary.NativeEndian.AppendUint32(b, uint32(len(m.RootFilter)))
	reap := byte(0)
	if m.Reap {
		reap = 1
	}
	b = binary.NativeEndian.AppendUint64(append(b, reap), m.LogBytes)
	b = binary.NativeEndian.AppendUint32(b, m.Score)
	b = binary.NativeEndian.AppendUint32(b, m.OpenFiles)
	b = append(append(append(b, m.UserFilter...), m.RootFilter...), m.Account.text()...)
	list := f.list()
	fds := make([]int, len(list))
	for i, file := range list {
		fds[i] = int(file.Fd())
	}
	if _, _, err := conn.WriteMsgUnix(b, unix.UnixRights(fds...), nil); err != nil {
		return fmt.Errorf("boot: send: %w", err)
	}
	return nil
}

// ErrAbandoned is Receive's error when the server went away before it sent.
var ErrAbandoned = errors.New("boot: the server went away")

// Receive waits for the message.
func Receive(sock int) (Message, Files, error) {
	buf := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace(4*(fixedFiles+maxJoins)))
	var n, oobn int
	var err error
	for {
		n, oobn, _, _, err = unix.Recvmsg(sock, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return Message{}, Files{}, fmt.Errorf("boot: receive: %w", err)
	}
	if n == 0 {
		return Message{}, Files{}, ErrAbandoned
	}
	m, err := decode(buf[:n])
	if err != nil {
		return Message{}, Files{}, err
	}
	cms, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(cms) != 1 {
		return Message{}, Files{}, fmt.Errorf("boot: %d control messages: %w", len(cms), err)
	}
	fds, err := unix.ParseUnixRights(&cms[0])
	if err != nil {
		return Message{}, Files{}, fmt.Errorf("boot: descriptors: %w", err)
	}
	if len(fds) < fixedFiles {
		return Message{}, Files{}, fmt.Errorf("boot: %d descriptors came, at least %d are sent", len(fds), fixedFiles)
	}
	file := func(i int, name string) *os.File { return os.NewFile(uintptr(fds[i]), name) }
	f := Files{View: file(0, "view"), Log: file(1, "log"), Cgroup: file(2, "cgroup"), OOM: file(3, "oom"), Pids: file(4, "pids"), Facts: file(5, "facts"), Sudo: file(6, "sudo"),
		Gauges: Gauges{Memory: file(7, "memory"), MemoryLimit: file(8, "memory limit"), MemoryStat: file(9, "memory stat"), CPU: file(10, "cpu"), Tasks: file(11, "tasks")}}
	for i := range fds[fixedFiles:] {
		f.Joins = append(f.Joins, file(fixedFiles+i, "tasks"))
	}
	return m, f, nil
}

func decode(b []byte) (Message, error) {
	if len(b) < headerLen {
		return Message{}, fmt.Errorf("boot: a message of %d bytes", len(b))
	}
	m := Message{AgentCaps: binary.NativeEndian.Uint64(b), RootCaps: binary.NativeEndian.Uint64(b[8:]), Reap: b[24] == 1, LogBytes: binary.NativeEndian.Uint64(b[25:]),
		Score: binary.NativeEndian.Uint32(b[33:]), OpenFiles: binary.NativeEndian.Uint32(b[37:])}
	user, root := uint64(binary.NativeEndian.Uint32(b[16:])), uint64(binary.NativeEndian.Uint32(b[20:]))
	if b = b[headerLen:]; uint64(len(b)) < user+root {
		return Message{}, fmt.Errorf("boot: filters of %d bytes, told as %d", len(b), user+root)
	}
	// Copies: the rest of the buffer need not live as long as the agent.
	m.UserFilter, m.RootFilter = bytes.Clone(b[:user]), bytes.Clone(b[user:user+root])
	var err error
	m.Account, err = parseAccount(string(b[user+root:]))
	return m, err
}

// served is the reply of an agent that serves.
const served = "ok"

// Answer sends the reply: that the agent serves, or why it does not.
func Answer(sock int, failed error) error {
	text := served
	if failed != nil {
		text = failed.Error()
	}
	if err := unix.Sendmsg(sock, []byte(text[:min(len(text), maxReply)]), nil, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("boot: reply: %w", err)
	}
	return nil
}

// ErrEnded is Await's error when the agent ended before it replied.
var ErrEnded = errors.New("boot: the agent ended")

// Await waits for the agent's reply, until the deadline that was set on conn.
func Await(conn *net.UnixConn) error {
	buf := make([]byte, maxReply)
	n, err := conn.Read(buf)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
		return ErrEnded
	case err != nil:
		return fmt.Errorf("boot: the agent gave no reply: %w", err)
	case string(buf[:n]) != served:
		return fmt.Errorf("boot: the agent says: %s", buf[:n])
	}
	return nil
}
