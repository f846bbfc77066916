// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"sync"

	"sandpit.dev/sandbox"
)

// maxGone bounds the deleted sandboxes that are remembered.
const maxGone = 1000

// gone remembers the last sandboxes that were deleted by clients that ask for a sandbox once more when they have deleted it,
// and take 404 for a failure.
type gone struct {
	mu   sync.Mutex
	last []*sandbox.Sandbox
}

func (g *gone) add(s *sandbox.Sandbox) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.last) == maxGone {
		g.last = append(g.last[:0], g.last[1:]...)
	}
	g.last = append(g.last, s)
}

// of returns a project's sandbox as it was when it was deleted, nil if it is not remembered.
func (g *gone) of(project, id string) *sandbox.Sandbox {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.last {
		if string(s.ID) == id && s.Project == project {
			return s
		}
	}
	return nil
}
