// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages

import (
	"context"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// extension is what the engine asks this package for; see [engine.Extension].
type extension struct{ s *Service }

// Adopt ends the language servers that an earlier server of ours left running, and leaves it to the engine to complete their rows.
func (e extension) Adopt(ctx context.Context, u *engine.Use, rows []*sandbox.Event) (rest []*sandbox.Event, err error) {
	for _, ev := range rows {
		if ev.Type == sandbox.EventLanguageServer {
			if e.s.runs(ev.ProcessID) {
				continue
			}
			if err := u.Kill(ctx, ev.ProcessID); err != nil {
				e.s.log.Warn("a language server of the last run cannot be ended", "sandbox", u.Sandbox(), "process", ev.ProcessID, "error", err)
			}
		}
		rest = append(rest, ev)
	}
	return rest, nil
}

// runs reports whether a process is one of this server of ours, which completes its row.
func (s *Service) runs(process string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.servers {
		if x.id == process {
			return true
		}
	}
	return false
}

// Command returns nil: servers are processes like others.
func (extension) Command(*engine.Use, string) engine.Command { return nil }

// Private reports that anybody may read what a server says who may read its files.
func (extension) Private(sandbox.Process) bool { return false }
