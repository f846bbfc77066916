// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traffic

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/tproxy"
)

const (
	// stepPatience is how long one may take to give what it made, from when it connected on, and to connect.
	stepPatience = 10 * time.Second
	maxStep      = 2 * maxWords * 6 // bytes of what it says
	maxFiles     = 2 * pairs        // that come with it
)

// Step makes the sockets, and gives them to the agent that waits at the abstract socket of that name. It runs in the
// network namespace of the agent and in another one of processes, with CAP_NET_ADMIN. Where the namespace has an interface beside
// the loopback, reached is where the agent is reached over it.
func Step(name string, reached netip.AddrPort) error {
	files, failed := makeSockets(reached)
	defer closeAll(files)
	c, err := connect(name)
	if err != nil {
		return errors.Join(failed, err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(stepPatience))
	if failed != nil {
		_, err := c.Write(refusalOf(failed).append(nil))
		return errors.Join(failed, err)
	}
	if err := give(c, files); err != nil {
		return err
	}
	// The sockets are the agent's alone before it hears the connection end.
	closeAll(files)
	_, err = c.Read(make([]byte, 1))
	return err
}

// give sends files.
func give(c *net.UnixConn, files []*os.File) (err error) {
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for _, f := range files {
		err = errors.Join(err, control(f, func(fd int) error {
			kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
			if err == nil {
				fds = append(fds, kept)
			}
			return err
		}))
	}
	if err == nil {
		_, _, err = c.WriteMsgUnix([]byte("{}"), unix.UnixRights(fds...), nil)
	}
	return err
}

// makeSockets steers the network namespace, and makes pairs of sockets.
func makeSockets(reached netip.AddrPort) (files []*os.File, err error) {
	if reached.IsValid() {
		err = tproxy.SteerBeside(Port, reached)
	} else {
		err = tproxy.Steer(Port)
	}
	if err != nil {
		return nil, err
	}
	for range pairs {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			f, err := tproxy.Socket(kind)
			if err != nil {
				return files, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// connect connects to the agent. Who crowds there keeps it out for a moment at most.
func connect(name string) (*net.UnixConn, error) {
	for limit := time.Now().Add(stepPatience); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: "@" + name, Net: "unix"})
		if err == nil || time.Now().After(limit) || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ECONNREFUSED) {
			return c, err
		}
	}
}

// await waits for the step, until the session is over.
func (i *inside) await() ([]pair, error) {
	name := rand.Text()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("wait for the step that makes sockets: %w", err)
	}
	ended := make(chan struct{})
	defer func() {
		_ = l.Close()
		<-ended
	}()
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(ended)
		select {
		case <-i.over:
		case <-done:
		}
		_ = l.Close()
	}()
	i.say(kindNeed, 0, []byte(name))
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			select {
			case <-i.over:
				return nil, net.ErrClosed
			case <-time.After(acceptPause):
				continue
			}
		}
		if !outside(c) {
			_ = c.Close()
			continue
		}
		return take(c)
	}
}

// outside reports whether who connected is in no namespace of processes that this process sees: no program
// of the sandbox.
func outside(c *net.UnixConn) bool {
	pid := int32(-1)
	err := control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			pid = cred.Pid
		}
		return err
	})
	return err == nil && pid == 0
}

// take takes what the step gives.
func take(c *net.UnixConn) (all []pair, err error) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(stepPatience))
	b, oob := make([]byte, maxStep), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, o, flags, _, err := c.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the step that makes sockets gave none (%s)", err)
	}
	files := received(oob[:o])
	var said refusal
	if err := json.Unmarshal(b[:n], &said); err == nil && said.Code != "" {
		closeAll(files)
		return nil, said.fault()
	}
	if len(files) == 0 || len(files)%2 != 0 || flags&unix.MSG_CTRUNC != 0 {
		closeAll(files)
		return nil, fault.New(fault.Unavailable, "the step that makes sockets gave %d files, and no pairs of sockets", len(files))
	}
	for n := 0; n < len(files); n += 2 {
		all = append(all, pair{files[n], files[n+1]})
	}
	_, _ = c.Write([]byte{1})
	_, _ = c.Read(make([]byte, 1)) // until it has none of them any more
	return all, nil
}

// received returns the files of a message.
func received(oob []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "traffic"))
		}
	}
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
