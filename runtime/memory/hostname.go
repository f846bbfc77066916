// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

var _ runtime.Namer = (*instance)(nil)

// SetHostname keeps name. Commands of the fake see the host's own.
func (i *instance) SetHostname(_ context.Context, name string) error {
	i.m.verb.Lock()
	defer i.m.verb.Unlock()
	if _, err := i.m.running(); err != nil {
		return err
	}
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	i.m.hostname = name
	return nil
}

// Hostname is that which an instance was created, started or named with last.
func (h *Host) Hostname(id sandbox.ID) (string, error) {
	m, err := h.find(id)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hostname, nil
}
