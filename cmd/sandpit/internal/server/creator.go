// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// creator makes a sandbox, or finds the one with its key, and says what it waits for.
type creator = func(context.Context, *client.Client, v1.CreateSandbox) (s *v1.Sandbox, created bool, err error)
