// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command containerd-shim-runsc-v1 is that of gVisor for hosts whose root may not lower its processes' oom_score_adj. gVisor's own
// sets -999 for itself as it starts, and does not start where it cannot.
package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	gvisor "gvisor.dev/gvisor/pkg/shim/v1"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // its service
)

// manager starts the shim itself, and is gVisor's for all else.
type manager struct{ shim.Manager }

// addressFile is where the service finds its address in its directory.
const addressFile = "address"

// Start starts the service of one container, in the directory of its bundle, on a socket that it inherits.
func (manager) Start(ctx context.Context, id string, o shim.StartOpts) (none shim.BootstrapParams, err error) {
	namespace, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return none, err
	}
	self, err := os.Executable()
	if err != nil {
		return none, err
	}
	address, err := shim.SocketAddress(ctx, o.Address, id, o.Debug)
	if err != nil {
		return none, err
	}
	socket, err := shim.NewSocket(address)
	if err != nil {
		return none, err
	}
	file, err := socket.File()
	if err != nil {
		return none, err
	}
	if err := os.WriteFile(addressFile, []byte(address), 0o600); err != nil {
		return none, err
	}
	cmd := exec.Command(self, "-namespace", namespace, "-address", o.Address, "-id", id)
	cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = append(os.Environ(), "GOMAXPROCS=2"), []*os.File{file}, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return none, err
	}
	if err := shim.WritePidFile("shim.pid", cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		return none, err
	}
	return shim.BootstrapParams{Version: 2, Address: address, Protocol: "ttrpc"}, nil
}

func main() {
	shim.Run(context.Background(), manager{gvisor.NewShimManager("io.containerd.runsc.v1")})
}
