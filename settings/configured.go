// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"slices"

	"sandpit.dev/access"
)

// Configured is a key of the server's configuration, as the server started with it.
type Configured struct {
	Key     string // as the file has it, with dots between sections
	Value   any    // as JSON has it, without what is secret
	Secret  bool   // something of it is, or would be, secret
	Source  Source // where it comes from; never [Set]
	Setting string // the setting that begins with it, and needs no restart to change; "": none does
}

// Configuration returns the configuration, in the order of its keys' definition. It needs the scope server:admin.
func (s *Service) Configuration(_ context.Context, c access.Caller) ([]Configured, error) {
	if err := c.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	return slices.Clone(s.configured), nil
}
