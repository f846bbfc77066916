// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
)

// socketPatience is how long an agent gets to listen, once its container was started. It takes a
// millisecond, but the host may be busy.
const socketPatience = 30 * time.Second

// Dial connects to the agent. What is inside may take its socket's place: a handshake by the key of
// this start says who answers.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	if _, err := i.life(); err != nil {
		return nil, err
	}
	i.mu.Lock()
	frozen, paused, key, calls := i.frozen, i.paused, i.key, i.calls
	i.mu.Unlock()
	switch {
	case frozen && i.stillFrozen(ctx):
		return nil, fault.New(fault.Unavailable, "somebody paused the container of sandbox %s", i.id).
			WithRemedy("docker unpause %s", i.d.containerName(i.id))
	case key == nil:
		return nil, i.keyLost()
	case calls != nil:
		return i.dialStream(ctx, calls.DialContext)
	case paused:
		nc, err := i.reach(ctx)
		if err != nil {
			return nil, err
		}
		return &later{Conn: nc, key: key}, nil
	}
	return (&handshake.Dialer{Dial: i.reach, Key: key, What: handshake.OneCall}).DialContext(ctx)
}

func (i *Instance) keyLost() error {
	return fault.New(fault.Unavailable, "the key of sandbox %s's agent is lost", i.id).WithRemedy("stop the sandbox and start it again")
}

// errFreezing is why a stream does not begin now.
var errFreezing = errors.New("the Engine freezes the container")

// holdStreams has no stream begin until the function that it returns is called. One that is about to
// is waited for; what is inside can have that take long.
func (i *Instance) holdStreams(ctx context.Context) (begin func(), err error) {
	if !i.streams() {
		return func() {}, nil
	}
	limit := time.Now().Add(streamPatience)
	for !i.beginning.TryLock() {
		if time.Now().After(limit) {
			return nil, fault.New(fault.Unavailable, "the agent of sandbox %s does not answer to a stream that begins, and the container is not frozen meanwhile", i.id).
				WithRemedy("try again, or stop the sandbox first")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return i.beginning.Unlock, nil
}

// streamPatience is how long freezing a container waits for streams that are about to begin.
const streamPatience = 10 * time.Second

// dialStream opens one of many connections over a stream that the Engine carries. The stream of an
// agent that does not listen yet ends at once.
func (i *Instance) dialStream(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	down, err := i.life()
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	limit := i.began.Add(socketPatience) // long over where an earlier server started it
	i.mu.Unlock()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		held := !i.beginning.TryRLock() // it is being frozen, for an instant
		var conn net.Conn
		err := errFreezing
		if !held {
			conn, err = dial(ctx)
			i.beginning.RUnlock()
		}
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, over := i.life(); over != nil {
			return nil, over
		}
		if !held && time.Now().After(limit) {
			return nil, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s cannot be reached through its Engine", i.id)
		}
		select {
		case <-down:
			return nil, i.notRunning()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// reach connects to the agent's socket, which may not be there yet.
func (i *Instance) reach(ctx context.Context) (net.Conn, error) {
	down, err := i.life()
	if err != nil {
		return nil, err
	}
	limit := time.Now().Add(socketPatience)
	for pause := 500 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		conn, err := i.connect(ctx)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(limit) {
			if _, over := i.life(); over != nil {
				return nil, over
			}
			return nil, fault.Wrap(fault.Unavailable, err, "the agent of sandbox %s does not answer", i.id)
		}
		select {
		case <-down:
			return nil, i.notRunning()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// connect connects to the socket. It is in a directory that the container's root writes to, and its
// path is too long for the address of a socket: it is opened without following a link, and
// connected to by the descriptor.
func (i *Instance) connect(ctx context.Context) (net.Conn, error) {
	dir, err := i.d.instances.Open(string(i.id) + "/" + runDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	fd, err := unix.Openat(int(dir.Fd()), socketFile, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%s is no socket", socketFile)
	}
	return new(net.Dialer).DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(fd))
}

// later is a connection to an agent that is paused: it begins with the first bytes, and waits for
// the agent as they do.
type later struct {
	net.Conn
	key   *handshake.Key
	once  sync.Once
	begun net.Conn
	err   error
}

func (l *later) begin() (net.Conn, error) {
	l.once.Do(func() { l.begun, l.err = handshake.Server(l.Conn, l.key, handshake.OneCall) })
	return l.begun, l.err
}

func (l *later) Read(b []byte) (int, error) {
	c, err := l.begin()
	if err != nil {
		return 0, err
	}
	return c.Read(b)
}

func (l *later) Write(b []byte) (int, error) {
	c, err := l.begin()
	if err != nil {
		return 0, err
	}
	return c.Write(b)
}
