// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Descriptors that the agent is started with, after the standard three.
const (
	ListenFD = 3 // a listening unix socket; its file is on the host only
	SocketFD = 4 // the agent's end of the pair
)

// Message is what the agent needs to make the sandbox's inside.
type Message struct {
	Hostname string
	// UserFilter and RootFilter are seccomp programs, see package
	// seccomp/install: for commands of the sandbox's user, and of its root.
	UserFilter []byte
	RootFilter []byte
	// RootCaps is the bounding set of commands that run as the sandbox's root.
	RootCaps uint64
	// Joins is how many of the descriptors are v1 tasks files.
	Joins int
}

// Files are the descriptors that travel with a [Message].
type Files struct {
	Root   *os.File // detached overlay: the root to be
	Dev    *os.File // detached, read-only: what becomes /dev
	Log    *os.File // directory for the logs of processes
	Cgroup *os.File // cgroup2 directory in which each command gets a group
	OOM    *os.File // counter of out-of-memory kills
	Pids   *os.File // counter of refused forks
	Joins  []*os.File
}

const fixedFiles = 6

func (f *Files) list() []*os.File {
	return append([]*os.File{f.Root, f.Dev, f.Log, f.Cgroup, f.OOM, f.Pids}, f.Joins...)
}

// Reply ends the boot. An empty Error means that the agent serves.
type Reply struct {
	Error string
}

const maxMessage = 64 << 10

// Send sends m and its files over the server's end of the pair.
func Send(conn *net.UnixConn, m Message, f Files) error {
	m.Joins = len(f.Joins)
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("boot: encode: %w", err)
	}
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
	oob := make([]byte, unix.CmsgSpace(4*(fixedFiles+8)))
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
	var m Message
	if err := json.Unmarshal(buf[:n], &m); err != nil {
		return Message{}, Files{}, fmt.Errorf("boot: decode: %w", err)
	}
	cms, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(cms) != 1 {
		return Message{}, Files{}, fmt.Errorf("boot: %d control messages: %w", len(cms), err)
	}
	fds, err := unix.ParseUnixRights(&cms[0])
	if err != nil {
		return Message{}, Files{}, fmt.Errorf("boot: descriptors: %w", err)
	}
	if len(fds) != fixedFiles+m.Joins {
		return Message{}, Files{}, fmt.Errorf("boot: %d descriptors came, %d were sent", len(fds), fixedFiles+m.Joins)
	}
	file := func(i int, name string) *os.File { return os.NewFile(uintptr(fds[i]), name) }
	f := Files{
		Root: file(0, "root"), Dev: file(1, "dev"), Log: file(2, "log"),
		Cgroup: file(3, "cgroup"), OOM: file(4, "oom"), Pids: file(5, "pids"),
	}
	for i := range m.Joins {
		f.Joins = append(f.Joins, file(fixedFiles+i, "tasks"))
	}
	return m, f, nil
}

// Answer sends the reply.
func Answer(sock int, r Reply) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("boot: encode: %w", err)
	}
	if len(b) > maxMessage {
		b = []byte(`{"Error":"boot failed"}`)
	}
	if err := unix.Sendmsg(sock, b, nil, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("boot: reply: %w", err)
	}
	return nil
}

// Await waits for the agent's reply, until the deadline that was set on conn.
func Await(conn *net.UnixConn) (Reply, error) {
	buf := make([]byte, maxMessage)
	n, err := conn.Read(buf)
	if err != nil {
		return Reply{}, fmt.Errorf("boot: the agent gave no reply: %w", err)
	}
	var r Reply
	if err := json.Unmarshal(buf[:n], &r); err != nil {
		return Reply{}, fmt.Errorf("boot: the agent's reply makes no sense: %w", err)
	}
	return r, nil
}
