// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"sync/atomic"

	"sandpit.dev/agent/server/view"
)

// Service answers calls on ports. It is safe for concurrent use.
type Service struct {
	user    func() view.View // of commands
	dials   atomic.Int64     // connections to ports
	looking chan struct{}    // held by the one call that reads the lists of sockets
}

// New makes a service. The view is that of commands: without the right to trace others, only its user may look
// whose the sockets are.
func New(user func() view.View) *Service {
	return &Service{user: user, looking: make(chan struct{}, 1)}
}
