// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/internal/programs"
)

// Components that a node starts again when they end.
const (
	Kubelet     = "kubelet"
	Containerd  = "containerd"
	Etcd        = "etcd"
	APIServer   = "kube-apiserver"
	Controllers = "kube-controller-manager"
	Scheduler   = "kube-scheduler"
)

// Kill ends a component by SIGKILL. It is started again at once.
func (m *Machine) Kill(ctx context.Context, component string) error {
	pid, err := os.ReadFile(filepath.Join(m.dir, "pids", component))
	if err != nil {
		return err
	}
	return programs.Said(m.Command(ctx, "kill", "-9", strings.TrimSpace(string(pid))))
}

// Hold is Kill of a component that is not started again before Release.
func (m *Machine) Hold(ctx context.Context, component string) error {
	if err := os.WriteFile(m.held(component), nil, 0o600); err != nil {
		return err
	}
	return m.Kill(ctx, component)
}

// Release has a component that was held be started again.
func (m *Machine) Release(component string) error { return os.Remove(m.held(component)) }

func (m *Machine) held(component string) string { return filepath.Join(m.dir, "held", component) }
