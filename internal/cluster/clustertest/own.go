// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/programs"
)

// Start starts a cluster for one test, which ends with it. The test itself stays outside of its network, see [Dialer]. It skips the test where there can be none.
func Start(t testing.TB) *cluster.Cluster {
	t.Helper()
	if why := missing(); why != "" {
		t.Skipf("no cluster: %s", why)
	}
	dir, err := os.MkdirTemp("/var/tmp", "sandpit-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c, err := cluster.Start(t.Context(), cluster.Options{
		Dir: dir, Group: "sandpit-test-" + strings.ToLower(rand.Text()),
		Programs: &programs.Finder{Cache: programs.UserCache(), Scratch: filepath.Join(dir, "fetched"), Fetch: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Within returns what a command line begins with that is to run in a cluster's network.
func Within(c *cluster.Cluster) []string {
	return []string{"nsenter", "--net=/proc/" + strconv.Itoa(c.PID) + "/ns/net", "--"}
}

// Dialer returns what connects to addresses in a cluster's network.
func Dialer(c *cluster.Cluster) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		type dialed struct {
			nc  net.Conn
			err error
		}
		done := make(chan dialed, 1)
		go func() {
			runtime.LockOSThread() // for ever: the thread ends with the goroutine
			nc, err := dialIn(ctx, c.PID, network, address)
			done <- dialed{nc, err}
		}()
		d := <-done
		return d.nc, d.err
	}
}

func dialIn(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}
