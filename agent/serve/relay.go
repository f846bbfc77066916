// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"io"
	"net"
)

// Relay connects nc with the agent's socket at path, until either ends. It knows no key, and what it
// carries is sealed: it is for whoever can start a program where the agent is, and reach no socket there.
func Relay(ctx context.Context, nc net.Conn, path string) error {
	defer nc.Close()
	to, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("connect to the agent: %w", err)
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { _ = to.Close(); _ = nc.Close() })
	defer stop()
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(to, nc)
		_ = to.Close()
		ended <- err
	}()
	go func() {
		_, err := io.Copy(nc, to)
		_ = nc.Close()
		ended <- err
	}()
	<-ended
	_ = to.Close()
	_ = nc.Close()
	<-ended
	return nil
}
